-- Called when Karmada is about to write a copy that is there. Karmada itself has kept the
-- copy's resource version, finalizers, owners, and the labels and annotations that the cell
-- added.
--
-- What else the cell owns is the copy's status, which its agent writes. Where the cell's
-- definition has no status subresource, a write without it would wipe the agent's report,
-- and with it the number of addresses that are out.
--
-- A copy of another network under the same name is the copy of a deleted predecessor, which
-- stays until its last address is gone. Writing over it would hand its addresses to the new
-- network. The error stands in the binding's appliedMessage.

local uid_label = "networking.datumapis.com/network-uid"

local function network_uid(object)
  local labels = object.metadata ~= nil and object.metadata.labels or nil
  return labels ~= nil and labels[uid_label] or nil
end

function Retain(desiredObj, observedObj)
  local held, wanted = network_uid(observedObj), network_uid(desiredObj)
  if held ~= nil and held ~= "" and held ~= wanted then
    error("this cell still holds the copy of a deleted predecessor: it is of network UID " .. held ..
      ", not " .. (wanted or "none") .. ", and goes with its last address", 0)
  end
  desiredObj.status = observedObj.status
  return desiredObj
end
