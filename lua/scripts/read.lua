-- Reading of what cells report, value by value. What cannot be what it should be counts as
-- absent, and the first such fault is kept.
--
-- Karmada gives scripts no setmetatable, no string.gsub and only floats, forgets null, and
-- tells no empty list from an empty object. Its states are used again for other objects:
-- nothing here is global.

local uid_label = "networking.datumapis.com/network-uid"
local most_whole = 9007199254740991
local most_int32 = 2147483647
local most_message = 1024
local most_condition_type = 316
local most_condition_reason = 1024

-- clip cuts a text to at most so many bytes, between characters.
local function clip(text, most)
  if #text <= most then
    return text
  end
  local last = most
  while last > 0 do
    local after = string.byte(text, last + 1)
    if after < 128 or after > 191 then
      break
    end
    last = last - 1
  end
  return string.sub(text, 1, last)
end

local function is_list(value)
  return type(value) == "table" and value[1] ~= nil
end

local function is_empty(value)
  return type(value) == "table" and next(value) == nil
end

local function is_object(value)
  return type(value) == "table" and not is_list(value)
end

local function describe(value)
  if value == nil then
    return "missing"
  end
  if type(value) == "string" then
    return 'the text "' .. clip(value, 64) .. '"'
  end
  if type(value) == "number" then
    return string.format("%.15g", value)
  end
  if type(value) == "boolean" then
    return tostring(value)
  end
  if is_empty(value) then
    return "empty"
  end
  if is_list(value) then
    return "a list"
  end
  return "an object"
end

-- A reader is a table: fault, and list and index where the values being read are in a list.

local function fail(reader, path, value, want)
  if reader.fault ~= nil then
    return
  end
  if reader.list ~= nil then
    local inside = ""
    if path ~= "" then
      inside = "." .. path
    end
    path = reader.list .. "[" .. string.format("%d", reader.index) .. "]" .. inside
  end
  reader.fault = path .. " is " .. describe(value) .. ", want " .. want
end

local function read_text(reader, path, value)
  if type(value) == "string" then
    return value
  end
  if value ~= nil then
    fail(reader, path, value, "text")
  end
  return ""
end

local function read_truth(reader, path, value)
  if value ~= nil and type(value) ~= "boolean" then
    fail(reader, path, value, "true or false")
  end
  return value == true
end

local function read_whole(reader, path, value, most)
  if value == nil then
    return nil
  end
  if type(value) ~= "number" or value ~= math.floor(value) or value < 0 or value > most then
    fail(reader, path, value, "a whole number from 0 to " .. string.format("%d", most))
    return nil
  end
  return value + 0
end

-- read_object gives an object to take fields from: an empty one where there is none.
local function read_object(reader, path, value)
  if value == nil then
    return {}
  end
  if not is_object(value) then
    fail(reader, path, value, "an object")
    return {}
  end
  return value
end

local function read_list(reader, path, value)
  if value == nil or is_empty(value) then
    return {}
  end
  if not is_list(value) then
    fail(reader, path, value, "a list")
    return {}
  end
  return value
end

local function read_families(reader, path, value)
  local four, six = false, false
  local items = read_list(reader, path, value)
  reader.list = path
  for i, item in ipairs(items) do
    reader.index = i - 1
    if item == "IPv4" then
      four = true
    elseif item == "IPv6" then
      six = true
    else
      fail(reader, "", item, "IPv4 or IPv6")
    end
  end
  reader.list = nil
  local families = {}
  if four then
    table.insert(families, "IPv4")
  end
  if six then
    table.insert(families, "IPv6")
  end
  return families
end

local function is_domain(text)
  local from = 1
  while true do
    local dot = string.find(text, ".", from, true)
    local label = string.sub(text, from, (dot or #text + 1) - 1)
    if not string.find(label, "^[a-z0-9]$") and not string.find(label, "^[a-z0-9][a-z0-9-]*[a-z0-9]$") then
      return false
    end
    if dot == nil then
      return true
    end
    from = dot + 1
  end
end

local function is_condition_type(text)
  if #text > most_condition_type then
    return false
  end
  local name = text
  local slash = string.find(text, "/", 1, true)
  if slash ~= nil then
    if not is_domain(string.sub(text, 1, slash - 1)) then
      return false
    end
    name = string.sub(text, slash + 1)
  end
  return string.find(name, "^[A-Za-z0-9]$") ~= nil or string.find(name, "^[A-Za-z0-9][A-Za-z0-9_.-]*[A-Za-z0-9]$") ~= nil
end

local function is_condition_status(text)
  return text == "True" or text == "False" or text == "Unknown"
end

local function is_condition_reason(text)
  return #text <= most_condition_reason
    and (string.find(text, "^[A-Za-z]$") ~= nil or string.find(text, "^[A-Za-z][A-Za-z0-9_,:]*[A-Za-z0-9_]$") ~= nil)
end

-- is_moment tells a time as Kubernetes writes it, in UTC and whole seconds. The zero time,
-- which would be written as null, is none.
local function is_moment(text)
  if #text ~= 20 or text == "0001-01-01T00:00:00Z" then
    return false
  end
  local year, month, day, hour, minute, second =
    string.match(text, "^([0-9][0-9][0-9][0-9])-([0-9][0-9])-([0-9][0-9])T([0-9][0-9]):([0-9][0-9]):([0-9][0-9])Z$")
  if year == nil then
    return false
  end
  year, month, day = tonumber(year), tonumber(month), tonumber(day)
  local days = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
  if year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0) then
    days[2] = 29
  end
  return month >= 1 and month <= 12 and day >= 1 and day <= days[month]
    and tonumber(hour) <= 23 and tonumber(minute) <= 59 and tonumber(second) <= 59
end

local function read_matching(reader, path, value, right, want)
  if type(value) ~= "string" or not right(value) then
    fail(reader, path, value, want)
    return ""
  end
  return value
end

-- read_condition reads one condition; nil where the API server would not take it.
local function read_condition(reader, value)
  if not is_object(value) or is_empty(value) then
    fail(reader, "", value, "a condition")
    return nil
  end
  local before = reader.fault
  reader.fault = nil
  local condition = {
    type = read_matching(reader, "type", value.type, is_condition_type, "a name like Ready or example.com/Ready"),
    status = read_matching(reader, "status", value.status, is_condition_status, "True, False or Unknown"),
    reason = read_matching(reader, "reason", value.reason, is_condition_reason, "a word like NotReady"),
    message = clip(read_text(reader, "message", value.message), most_message),
    lastTransitionTime = read_matching(reader, "lastTransitionTime", value.lastTransitionTime, is_moment, "a time like 2026-01-31T12:00:00Z"),
  }
  local observed = read_whole(reader, "observedGeneration", value.observedGeneration, most_whole)
  if observed ~= nil and observed > 0 then
    condition.observedGeneration = observed
  end
  local complete = reader.fault == nil
  if before ~= nil then
    reader.fault = before
  end
  if not complete then
    return nil
  end
  return condition
end

-- read_conditions reads the conditions that the API server would take, sorted by type.
local function read_conditions(reader, path, value)
  local conditions, seen = {}, {}
  local items = read_list(reader, path, value)
  reader.list = path
  for i, item in ipairs(items) do
    reader.index = i - 1
    local condition = read_condition(reader, item)
    if condition ~= nil then
      if seen[condition.type] then
        fail(reader, "type", condition.type, "each type once")
      else
        seen[condition.type] = true
        table.insert(conditions, condition)
      end
    end
  end
  reader.list = nil
  table.sort(conditions, function(a, b) return a.type < b.type end)
  return conditions
end

-- set puts a value into a table where it is not the one that is left out when written.
local function set(into, key, value)
  if value == nil or value == 0 or value == "" or value == false or is_empty(value) then
    return
  end
  into[key] = value
end
