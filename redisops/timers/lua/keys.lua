-- Keys: put before the scripts that write, claim or end timers with keys. This part reads
-- and writes which timers have a key and which hold it; keys_order.lua follows it, and
-- docs/decisions/0023-keys.md has the reasons.
--
-- The hash of keys has an entry for each timer with a key: its place among the timers of
-- the key, which is its instant in µs (18 digits) and the number of its schedule (15
-- digits); 's' if it is the sole timer of its key, else 'm'; the key.
--
-- The hash of states has a field for each key that has timers: 's' and the id of the sole
-- one; else 'm' and the ids that hold the key, each after its length. The field '' counts
-- schedules.
--
-- An entry may have an 'm' although its timer is the only one left, but never an 's' while
-- the key has another: a claim does not read the state of a sole timer's key.

-- PARKED is the score of a due timer that waits for its key: the year 10000, in which
-- no timer can be scheduled.
local PARKED = '253402300800'

local PLACE = 33      -- bytes of a place
local KEY = PLACE + 2 -- where the key of an entry begins
local SOLE = string.byte('s')

local keyed = {}
local key_of, key_order, key_states, key_timeline, key_leases
local entries = {} -- by id, of those that were read; false: none
local states = {}  -- by key, of those that were read; false: none; a text until it is used
local changed = {} -- the keys whose states are not written yet

-- open names the keys in Redis; it comes before all other functions.
function keyed.open(of, order, busy, timeline, leases)
  key_of, key_order, key_states, key_timeline, key_leases = of, order, busy, timeline, leases
end

function keyed.parked(score) return score and same(score, PARKED) end

local function micros(instant)
  return string.format('%018.0f', math.max(0, math.min(instant * 1e6, 9.9e17)))
end

-- prefix_of is what the members of the order begin with that are timers of a key.
local function prefix_of(key) return string.format('%03d', #key) .. key end

-- noted is the id of a timer in the state of the key that it holds.
local function noted(id) return #id .. ' ' .. id end

local function place_in(entry) return string.sub(entry, 1, PLACE) end
local function key_in(entry) return string.sub(entry, KEY) end

-- place_of returns the place of a timer and its key, or nil if it has none.
local function place_of(entry)
  if not entry or #entry < KEY then return nil end
  return place_in(entry), key_in(entry)
end
keyed.place_of = place_of

-- instant_of is the instant of a place, as a text.
local function instant_of(place)
  return text(tonumber(string.match(string.sub(place, 1, 18), '^%d+$') or 0) / 1e6)
end
keyed.instant_of = instant_of

-- is_sole reports whether a timer with that entry is the sole one of its key.
local byte = string.byte
local function is_sole(entry) return byte(entry, KEY - 1) == SOLE end

-- all_sole reports whether the timers with these entries, or false, need no state.
local function all_sole(found)
  for i = 1, #found do
    if found[i] and not is_sole(found[i]) then return false end
  end
  return true
end

-- note_entries notes the entries that were read of timers.
local function note_entries(ids, found)
  for i = 1, #ids do
    local entry = found[i]
    entries[ids[i]] = entry and #entry >= KEY and entry
  end
end

-- write_entry writes the entry of a timer whose key has, or may get, others.
local function write_entry(id, place, key)
  entries[id] = place .. 'm' .. key
  redis.call('HSET', key_of, id, entries[id])
end

local function read_state(value)
  if string.byte(value) == SOLE then return {sole = string.sub(value, 2), held = {}} end
  local held, pos = {}, 2
  while pos <= #value do
    local _, stop, n = string.find(value, '^(%d+) ', pos)
    if not stop then break end
    held[#held + 1] = string.sub(value, stop + 1, stop + n)
    pos = stop + n + 1
  end
  return {held = held}
end

-- read_states reads the states of keys that were not read yet.
local function read_states(keys)
  local missing = {}
  for _, key in ipairs(keys) do
    if states[key] == nil then
      missing[#missing + 1] = key
      states[key] = false
    end
  end
  local found = collect('HMGET', key_states, missing, 1, #missing)
  for i, key in ipairs(missing) do states[key] = found[i] end
end

-- state returns the state of a key that was read: its sole timer, and those that hold it;
-- or false.
local function state_of(key)
  local state = states[key]
  if type(state) == 'string' then
    state = read_state(state)
    states[key] = state
  end
  return state
end

local function set_state(key, state) states[key], changed[key] = state, true end

local function write_states()
  local set, dropped = {}, {}
  for key in pairs(changed) do
    local state = states[key]
    if not state then
      dropped[#dropped + 1] = key
    elseif state.sole then
      set[#set + 1], set[#set + 2] = key, 's' .. state.sole
    else
      local held = {'m'}
      for _, id in ipairs(state.held) do held[#held + 1] = noted(id) end
      set[#set + 1], set[#set + 2] = key, table.concat(held)
    end
  end
  changed = {}
  variadic('HDEL', key_states, dropped, 1, #dropped)
  variadic('HSET', key_states, set, 1, #set)
end

-- waits_for_token reports whether a timer with that record waits for a token of its key:
-- flow_key_rate.lua notes since when, in place of the instant at which it was due.
local function waits_for_token(r) return r and r.state == 'w' and r.before ~= r.activation end

-- release makes a timer no longer hold its key, and reports whether it held it.
local function release(key, state, id)
  for i, held in ipairs(state.held) do
    if held == id then
      table.remove(state.held, i)
      changed[key] = true
      return true
    end
  end
  return false
end

local function holds(state, id)
  for _, held in ipairs(state.held) do
    if held == id then return true end
  end
  return false
end
