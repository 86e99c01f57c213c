-- The status that a context on the hub should have, from what Karmada has of its cells.

local most_listed = 8

local function first_line(text)
  local newline = string.find(text, "\n", 1, true)
  if newline == nil then
    return text
  end
  return string.sub(text, 1, newline - 1)
end

-- sentence joins what there is to say of several cells.
local function sentence(parts)
  if #parts <= most_listed then
    return table.concat(parts, "; ")
  end
  return table.concat(parts, "; ", 1, most_listed) .. "; and " .. string.format("%d", #parts - most_listed) .. " more cells"
end

-- named lists cells by name.
local function named(cells)
  if #cells == 1 then
    return "cell " .. cells[1]
  end
  if #cells <= most_listed then
    return "cells " .. table.concat(cells, ", ")
  end
  return "cells " .. table.concat(cells, ", ", 1, most_listed) .. " and " .. string.format("%d", #cells - most_listed) .. " more"
end

local function read_report(value)
  local reader = {}
  local stored = read_object(reader, "it", value)
  local report = {
    networkGeneration = read_whole(reader, "networkGeneration", stored.networkGeneration, most_whole),
    networkUID = read_text(reader, "networkUID", stored.networkUID),
    ipFamilies = read_families(reader, "ipFamilies", stored.ipFamilies),
    mtu = read_whole(reader, "mtu", stored.mtu, most_int32),
    holders = read_whole(reader, "holders", stored.holders, most_whole),
    terminating = read_truth(reader, "terminating", stored.terminating),
    conditions = read_conditions(reader, "conditions", stored.conditions),
    error = read_text(reader, "error", stored.error),
  }
  return report, reader.fault
end

-- lack is the sentence on what keeps a cell from carrying the network's rules, or nil.
local function lack(uid, item, report, fault)
  local name = item.clusterName
  if uid == "" then
    return "the context on the hub names no network UID: its label " .. uid_label .. " is missing"
  end
  if not item.applied then
    if item.appliedMessage ~= nil and item.appliedMessage ~= "" then
      return "not applied in cell " .. name .. ": " .. first_line(item.appliedMessage)
    end
    return "not yet applied in cell " .. name
  end
  if report == nil then
    return "cell " .. name .. " has not reported yet"
  end
  if fault ~= nil then
    return "the report of cell " .. name .. " cannot be read: " .. fault
  end
  if report.networkUID ~= "" and report.networkUID ~= uid then
    return "cell " .. name .. " still holds a deleted predecessor: its copy is of network UID " .. report.networkUID .. ", not " .. uid
  end
  local ill = ailment(report)
  if ill ~= nil then
    return "the copy in cell " .. name .. " " .. ill
  end
  if item.health == "Healthy" then
    return nil
  end
  if item.health == "Unhealthy" then
    return "the copy in cell " .. name .. " is unhealthy"
  end
  return "the health of the copy in cell " .. name .. " is not known yet"
end

-- health is that which Karmada has of a copy, but never Healthy where something is missing.
local function health(item, reported, lacking)
  if item.health == "Unhealthy" then
    return "Unhealthy"
  end
  if item.health ~= "Healthy" or (lacking and not (item.applied and reported)) then
    return "Unknown"
  end
  if lacking then
    return "Unhealthy"
  end
  return "Healthy"
end

local function last_holders(cells, name)
  for _, cell in ipairs(cells) do
    if is_object(cell) and cell.name == name then
      return cell.holders
    end
  end
  return nil
end

-- cell_of is one cell's part of the status. While there is nothing to be read of a cell, the
-- holders that it last reported stay: addresses are not given up for want of news.
local function cell_of(uid, last_cells, item)
  local report, fault
  if item.status ~= nil then
    report, fault = read_report(item.status)
  end
  local message = lack(uid, item, report, fault)
  local cell = {name = item.clusterName}
  set(cell, "applied", item.applied)
  cell.health = health(item, report ~= nil, message ~= nil)
  set(cell, "message", clip(message or "", most_message))
  if report ~= nil then
    set(cell, "networkGeneration", report.networkGeneration)
    set(cell, "networkUID", report.networkUID)
    set(cell, "ipFamilies", report.ipFamilies)
    set(cell, "mtu", report.mtu)
    cell.holders = report.holders
    set(cell, "terminating", report.terminating)
    set(cell, "conditions", report.conditions)
  end
  if cell.holders == nil and (report == nil or fault ~= nil or report.error ~= "") then
    cell.holders = last_holders(last_cells, item.clusterName)
  end
  return cell
end

-- cells_of are the cells' parts, sorted by name, each name once.
local function cells_of(uid, last_cells, items)
  local names, by_name = {}, {}
  for _, item in ipairs(items) do
    if by_name[item.clusterName] == nil then
      by_name[item.clusterName] = item
      table.insert(names, item.clusterName)
    end
  end
  table.sort(names)
  local cells = {}
  for _, name in ipairs(names) do
    table.insert(cells, cell_of(uid, last_cells, by_name[name]))
  end
  return cells
end

local function no_cells(kind)
  return {type = kind, status = "False", reason = "NoCells", message = "the context is delivered to no cell"}
end

local function ready(spec, cells)
  if #cells == 0 then
    return no_cells("Ready")
  end
  local missing = {}
  for _, cell in ipairs(cells) do
    if cell.message ~= nil then
      table.insert(missing, cell.message)
    end
  end
  if #missing > 0 then
    return {type = "Ready", status = "False", reason = "CellsNotReady", message = sentence(missing)}
  end
  return {
    type = "Ready",
    status = "True",
    reason = "CellsReady",
    message = 'network "' .. spec.network .. '" is present in location "' .. spec.location .. '"',
  }
end

-- lateness says how a cell's rules differ from those in the spec, or is nil.
local function lateness(uid, spec, cell)
  if cell.networkUID == nil then
    return "cell " .. cell.name .. " reports no rules"
  end
  if cell.networkUID ~= uid then
    return "cell " .. cell.name .. " carries the rules of another network"
  end
  local generation = cell.networkGeneration or 0
  if generation ~= spec.generation then
    return "cell " .. cell.name .. " carries generation " .. string.format("%d", generation) .. ", not " .. string.format("%d", spec.generation)
  end
  return nil
end

local function converged(uid, spec, cells)
  if #cells == 0 then
    return no_cells("Converged")
  end
  local behind = {}
  for _, cell in ipairs(cells) do
    local late = lateness(uid, spec, cell)
    if late ~= nil then
      table.insert(behind, late)
    end
  end
  if #behind > 0 then
    return {type = "Converged", status = "False", reason = "CellsBehind", message = sentence(behind)}
  end
  return {
    type = "Converged",
    status = "True",
    reason = "CellsConverged",
    message = "every cell carries generation " .. string.format("%d", spec.generation) .. ' of network "' .. spec.network .. '"',
  }
end

local function held(cells)
  local holding, silent = {}, {}
  for _, cell in ipairs(cells) do
    if cell.holders == nil then
      table.insert(silent, cell.name)
    elseif cell.holders > 0 then
      table.insert(holding, cell.name)
    end
  end
  if #holding == 0 and #silent == 0 then
    return {type = "Held", status = "False", reason = "NoAddressesHeld", message = "no cell holds addresses"}
  end
  if #holding == 0 then
    return {type = "Held", status = "Unknown", reason = "HoldersNotReported", message = "nobody reports holders in " .. named(silent)}
  end
  local message = "addresses are held in " .. named(holding)
  if #silent > 0 then
    message = message .. "; nobody reports holders in " .. named(silent)
  end
  return {type = "Held", status = "True", reason = "AddressesHeld", message = message}
end

-- put sets a condition, which keeps its time of transition unless its status changes.
local function put(conditions, condition, generation, now)
  set(condition, "observedGeneration", generation)
  condition.lastTransitionTime = now
  for i, other in ipairs(conditions) do
    if other.type == condition.type then
      if other.status == condition.status and other.lastTransitionTime ~= nil then
        condition.lastTransitionTime = other.lastTransitionTime
      end
      conditions[i] = condition
      return
    end
  end
  table.insert(conditions, condition)
end

-- read_hub reads what is needed of the context on the hub. Its API server has seen to it
-- that values are what they should be, so what is not is an error.
local function read_hub(context)
  local reader = {}
  local metadata = read_object(reader, "metadata", context.metadata)
  local labels = read_object(reader, "metadata.labels", metadata.labels)
  local spec = read_object(reader, "spec", context.spec)
  local network = read_object(reader, "spec.network", spec.network)
  local location = read_object(reader, "spec.location", spec.location)
  local status = read_object(reader, "status", context.status)
  local hub = {
    uid = read_text(reader, "metadata.labels[" .. uid_label .. "]", labels[uid_label]),
    generation = read_whole(reader, "metadata.generation", metadata.generation, most_whole),
    spec = {
      network = read_text(reader, "spec.network.name", network.name),
      location = read_text(reader, "spec.location.name", location.name),
      generation = read_whole(reader, "spec.networkGeneration", spec.networkGeneration, most_whole) or 0,
    },
    cells = read_list(reader, "status.cells", status.cells),
    conditions = read_list(reader, "status.conditions", status.conditions),
    status = status,
  }
  if reader.fault ~= nil then
    error("read the context: " .. reader.fault, 0)
  end
  return hub
end

function AggregateStatus(desiredObj, items)
  local hub = read_hub(desiredObj)
  local cells = cells_of(hub.uid, hub.cells, items or {})
  local now = os.date("!%Y-%m-%dT%H:%M:%SZ")
  put(hub.conditions, ready(hub.spec, cells), hub.generation, now)
  put(hub.conditions, converged(hub.uid, hub.spec, cells), hub.generation, now)
  put(hub.conditions, held(cells), hub.generation, now)
  table.sort(hub.conditions, function(a, b) return a.type < b.type end)
  hub.status.observedGeneration = hub.generation
  hub.status.conditions = hub.conditions
  hub.status.cells = nil
  set(hub.status, "cells", cells)
  desiredObj.status = hub.status
  return desiredObj
end
