-- What a copy amounts to, and whether it is well.

-- reflect makes the report of a copy. What of the copy cannot be read is told in it: a copy
-- that cannot be read must not hide behind the last report that could be made.
local function reflect(copy)
  local reader = {}
  local metadata = read_object(reader, "metadata", copy.metadata)
  local labels = read_object(reader, "metadata.labels", metadata.labels)
  local uid = read_text(reader, "metadata.labels[" .. uid_label .. "]", labels[uid_label])
  local spec = read_object(reader, "spec", copy.spec)
  local generation = read_whole(reader, "spec.networkGeneration", spec.networkGeneration, most_whole)
  local families = read_families(reader, "spec.ipFamilies", spec.ipFamilies)
  local mtu = read_whole(reader, "spec.mtu", spec.mtu, most_int32)
  local status = read_object(reader, "status", copy.status)
  local agent = read_object(reader, "status.agent", status.agent)
  local holders = read_whole(reader, "status.agent.holders", agent.holders, most_whole)
  local conditions = read_conditions(reader, "status.conditions", status.conditions)

  local report = {}
  set(report, "networkGeneration", generation)
  set(report, "networkUID", uid)
  set(report, "ipFamilies", families)
  set(report, "mtu", mtu)
  report.holders = holders
  set(report, "terminating", metadata.deletionTimestamp ~= nil)
  set(report, "conditions", conditions)
  report.error = reader.fault
  return report
end

-- ailment completes "the copy in cell X ..." with what is wrong with it, or is nil.
local function ailment(report)
  if report.error ~= nil and report.error ~= "" then
    return "cannot be read: " .. report.error
  end
  if report.networkUID == nil or report.networkUID == "" then
    return "names no network UID: its label " .. uid_label .. " is missing"
  end
  if report.terminating then
    return "is being deleted"
  end
  if report.ipFamilies == nil or is_empty(report.ipFamilies) then
    return "names no address families: the CustomResourceDefinition of NetworkContext there may be too old to keep spec.ipFamilies"
  end
  for _, condition in ipairs(report.conditions or {}) do
    if condition.type == "Accepted" and condition.status == "False" then
      return "is not accepted by the cell's agent: " .. condition.message
    end
  end
  return nil
end
