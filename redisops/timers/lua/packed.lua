-- Packed: put before exchange.lua. It collects the answer of an exchange, whose header
-- describes it.
--
-- Gives: p parts apart leased lengths length leaves_out firsts first_claim failures_of
--   dead_count deaths kept death answer

local parts, p = {''}, 1
local leased, apart = 0, false
local lengths = {}

local function length(s)
  local n = #s
  local t = lengths[n]
  if not t then
    t = n .. ' '
    lengths[n] = t
  end
  return t
end

-- leaves_out reports whether payloads with so many bytes are left out of the answer. Lua
-- would copy each several times; timers/fetch.go reads them.
local function leaves_out(bytes, apart_from)
  return apart_from > 0 and bytes >= apart_from
end

-- first_claim is the length of a payload and the counts of a first claim.
local firsts = {}

local function first_claim(payload)
  local t = length(payload) .. '1 0 '
  firsts[#payload] = t
  return t
end

-- failures_of is the failures of a lease in the answer; -1: none, and a handler has snoozed it.
local function failures_of(r)
  return r.tried and r.failures == 0 and -1 or r.failures
end

-- The new dead letters: their number, their lines in the answer, and their lines in
-- the stored answer, which have no payloads.
local dead_count, deaths, kept = 0, {}, {}

local function death(facts, id, payload, key)
  dead_count = dead_count + 1
  kept[dead_count] = facts .. ' ' .. #id .. ' ' .. #key .. '\n' .. id .. key
  deaths[dead_count] = facts .. ' ' .. #id .. ' ' .. #payload .. ' ' .. #key .. '\n' .. id .. payload .. key
end

-- answer returns the first line, with the head h of the timeline and the mark of the
-- settings, and the collected parts.
local function answer(now, h, finish, healed, refused, refusals, orphans, held, control)
  local next_due = '-1'
  if h and h < math.huge then
    next_due = until_due(h, now)
  end
  parts[1] = text(now) .. ' ' .. finish .. ' ' .. next_due .. ' ' .. healed .. ' ' ..
    orphans .. ' ' .. refused .. ' ' .. dead_count .. ' ' .. leased .. (apart and ' 1 ' or ' 0 ') .. held .. ' ' ..
    (flow and flow.waited or 0) .. ' ' .. (flow and flow.charges or '-') .. ' ' .. (flow and flow.key_runs or '-') .. ' ' .. control .. '\n' .. refusals
  if dead_count > 0 then parts[1] = parts[1] .. join(deaths) end
  return join(parts)
end
