-- Keys: put before the scripts that write, claim or end timers with keys. This part reads
-- which timers have a key; keys_states.lua has which hold it, keys_order.lua the order of
-- the others, and docs/decisions/0023-keys.md the reasons.
--
-- The hash of keys has an entry for each timer with a key: its place among the timers of
-- the key, which is its instant in µs (18 digits) and the number of its schedule (15
-- digits); 's' if it is the sole timer of its key, else 'm'; the key.
--
-- A timer with a key is one of these, and all scripts keep it so:
--   sole     the only timer of its key. It is never parked.
--   holder   it may run: it is leased, waits for its retry or for a token, or is due again
--            after that. It is never parked, and its score says when it goes on.
--   in line  it is in the order of its key. It is parked only if it is due, and a timer of
--            the key goes on by itself: a holder, or a due timer before it.
-- A timer that waits for its retry without its key (SkipFailed) is in none of these states, but
-- noted as a runner, as one that runs without its key is: see keys_states.lua.
-- So everything that a parked timer waits for has an instant of its own in the timeline. What a
-- peer, a node without limits per key or a lost write has changed is mended by the next
-- script that looks at the key, and for all keys by sweep_keys.lua: it walks through the
-- states, the holders and the parked timers.
--
-- An entry may have an 'm' although its timer is the only one left, but never an 's' while
-- the key has another: a claim does not read the state of a sole timer's key.
--
-- Gives: PARKED PLACE SOLE keyed key_leases key_of key_order key_states key_timeline
--   entries micros prefix_of noted place_in key_in place_of instant_of byte is_sole
--   all_sole note_entries write_entry waits_for_token

-- PARKED is the score of a due timer that waits for its key: the year 10000, in which
-- no timer can be scheduled.
local PARKED = '253402300800'

local PLACE = 33      -- bytes of a place
local KEY = PLACE + 2 -- where the key of an entry begins
local SOLE, DIGIT = string.byte('s'), string.byte('9')

local keyed = {}
local key_of, key_order, key_states, key_timeline, key_leases
local entries = {} -- by id, of those that were read; false: none

-- open names the keys in Redis; it comes before all other functions.
function keyed.open(of, order, busy, timeline, leases)
  key_of, key_order, key_states, key_timeline, key_leases = of, order, busy, timeline, leases
end

function keyed.parked(score) return score and same(score, PARKED) end

local function micros(instant)
  return string.format('%018.0f', math.max(0, math.min(instant * 1e6, 9.9e17)))
end

-- prefix_of is what the members of the order begin with that are timers of a key.
local prefixes = {}
local function prefix_of(key)
  local prefix = prefixes[key]
  if not prefix then
    prefix = string.format('%03d', #key) .. key
    prefixes[key] = prefix
  end
  return prefix
end

-- noted is the id of a timer in the state of the key that it holds.
local function noted(id) return #id .. ' ' .. id end

local function place_in(entry) return string.sub(entry, 1, PLACE) end
local function key_in(entry) return string.sub(entry, KEY) end

-- place_of returns the place of a timer and its key, or nil if it has none. A user without
-- a right to the keys of timers has lease records in their place, which begin with no digit.
local function place_of(entry)
  if not entry or #entry < KEY or string.byte(entry) > DIGIT then return nil end
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

-- waits_for_token reports whether a timer with that record waits for a token of its key:
-- flow_key_rate.lua notes since when, in place of the instant at which it was due.
local function waits_for_token(r) return r and r.state == 'w' and r.before ~= r.activation end

-- due_of returns the instant at which a timer with that score, lease record and entry is due,
-- as a text. If it is due already, and waits for its key or for a token, its score is
-- another instant. It was woken since, if it has a record and was never claimed.
function keyed.due_of(score, r, entry, now)
  local place = place_of(entry)
  local waits = keyed.parked(score) or waits_for_token(r) or r and r.state == 'w' and r.claims == 0 and not r.tried
  if place and waits then return instant_of(place) end
  return keyed.parked(score) and text(now) or score
end
