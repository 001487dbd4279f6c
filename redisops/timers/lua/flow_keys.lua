-- Flow by key: put before exchange.lua for topics whose timers have keys, after flow.lua
-- and keys_order.lua. The keys after that of flow control are the keys, their order and
-- their states; the last argument but one is the most timers of a key at once, 0 for no
-- bound, and after a ',' how many a key run may have; a 1 if a timer that waits for its retry
-- frees its key, else a 0; then what flow_key_rate.lua reads.
--
-- A key run is several timers of a key that an exchange leases to one node, which handles them one
-- after the other. It begins when no timer holds the key, and each of it holds the key.
--
-- A timer that is the sole one of its key costs only its entry here: it needs no state,
-- and nothing but a rate limit holds it back.
--
-- Gives: by_key LOOKED limit bounded running_hold taken firsts awake unwritten passed woken
--   started waits passes wanted BEYOND key_run free_of read_entries note_shared wake remove
--   released

local bad = mistyped(false, false, false, false, false, false, false, 'hash', 'zset', 'hash')
if bad then return bad end

local by_key = {}
flow.by_key = by_key

-- LOOKED bounds how many due timers one exchange looks at.
local LOOKED = 1000

local limit, key_run, skips = string.match(ARGV[#ARGV - 1], '^(%d+),?(%d*) ([01])')
limit, key_run, skips = tonumber(limit), tonumber(key_run) or 1, skips == '1'
-- With a rate limit and without a bound on the timers that run, only those that wait for a
-- token hold a key. Without either, those that run hold it for a node that has a bound, and
-- for a move, which takes all timers of a key.
local bounded = limit > 0
local running_hold = bounded or not key_rate
keyed.runs_apart = not running_hold or skips
if not bounded then limit = key_rate and key_rate.together or math.huge end
keyed.open(KEYS[8], KEYS[9], KEYS[10], KEYS[1], KEYS[3])

local taken = {}  -- the due timers that may be claimed
local firsts = {} -- a set of timers that were woken here: each is the next of its key
local awake = {}  -- those of them that are parked in Redis; the claim takes them behind the due ones
local unwritten = {} -- the set of awake
local woken, passed = 0, false
local started, waits = {}, {} -- timers that took a token, and until when others wait for one
local passes, wanted = {}, 0  -- keys whose turn such timers had, and how many were to be claimed

-- POSTPONED bounds how many keys an exchange looks at that the scripts before it have
-- left, and AT_ONCE how many timers of such a key it wakes.
local POSTPONED, AT_ONCE = 16, 500

-- BEYOND is how many timers of a key more than it was freed of an exchange wakes, if there
-- is room for them.
local BEYOND = 16

-- free_of returns how many more timers may hold a key. Of one that is free a key run may, for the rest
-- of the exchange; but a timer whose lease has expired is alone: what ended its node may do so again.
local function free_of(state)
  state.run = state.run or key_run > 1 and count_of(state) == 0
  return places_of(state, state.run and not state.alone and key_run or limit)
end

local function read_entries(ids)
  if #ids == 1 and entries[ids[1]] then return {entries[ids[1]]} end -- the next of a key
  return collect('HMGET', KEYS[8], ids, 1, #ids)
end

-- note_shared notes the entries that were read of timers, reads the states of the keys
-- that they may share with others, and returns those timers.
local function note_shared(ids, found)
  note_entries(ids, found)
  local shared, keys = {}, {}
  for i = 1, #ids do
    local e = entries[ids[i]]
    if e and not is_sole(e) then
      shared[#shared + 1], keys[#keys + 1] = ids[i], key_in(e)
    end
  end
  read_states(keys)
  know(shared, keys)
  return shared
end

-- wake wakes the next timers of keys, which have how many places became free. Of a key run it wakes
-- as many as this exchange is to claim, and one at least: no other may claim the rest.
local function wake(keys, now, want)
  local list = {}
  for key, freed in pairs(keys) do
    local state = state_of(key)
    local most = state and math.min(free_of(state), freed + BEYOND) or 0
    if most > 1 and state.run then most = math.min(most, math.max(want or 1, 1)) end
    if most > 0 then list[#list + 1] = {key = key, most = most, looks = most, ask = freed} end
  end
  if #list == 0 then return end
  for _, id in ipairs(keyed.wake(list, now)) do
    firsts[id], woken = true, woken + 1
    -- A timer that is claimed in this exchange need not be written as due before.
    if not key_rate then awake[#awake + 1], unwritten[id] = id, true end
  end
end

-- free notes that a place of a key became free.
local function free(freed, key) freed[key] = (freed[key] or 0) + 1 end

-- remove removes timers that are gone. It notes the keys that it frees.
local function remove(ids, freed)
  local found = read_entries(ids)
  local sole = {}
  if not all_sole(found) then note_shared(ids, found) end
  for i = 1, #ids do
    local e = found[i]
    if e and is_sole(e) then
      sole[#sole + 1] = key_in(e)
    elseif e then
      keyed.remove(key_in(e), place_in(e), ids[i])
      free(freed, key_in(e))
    end
  end
  variadic('HDEL', KEYS[8], ids, 1, #ids)
  variadic('HDEL', KEYS[10], sole, 1, #sole)
end

-- read_keys reads at once the keys of timers that are settled, for of.
local read_of = {}
function by_key.read_keys(ids)
  for i, entry in ipairs(collect('HMGET', KEYS[8], ids, 1, #ids)) do read_of[ids[i]] = entry end
end

-- of returns the key of a timer, or nil.
function by_key.of(id)
  local entry = read_of[id]
  if entry == nil then entry = redis.call('HGET', KEYS[8], id) end
  local _, key = place_of(entry)
  return key
end

-- released notes timers that were released: they are in the order of their keys again.
-- Those that have failed hold their keys on.
local function released(ids, freed)
  local shared, scores, stored = note_shared(ids, read_entries(ids)), {}, {}
  if running_hold and not skips then
    scores = collect('ZMSCORE', KEYS[1], shared, 1, #shared)
    stored = collect('HMGET', KEYS[3], shared, 1, #shared)
  end
  for i, id in ipairs(shared) do
    local e = entries[id]
    local key = key_in(e)
    local state, r = state_of(key), current(stored[i], scores[i])
    if not state then
      state = {held = {}}
      set_state(key, state)
    end
    keyed.several(key, state)
    if keyed.runs_apart then set_member(runner(key, id), false) end
    if not (r and r.tried) then
      if release(key, state, id) then free(freed, key) end
      link(key, place_in(e), id)
    end
  end
end

-- failed notes timers that wait for their retries without their keys: a move takes them with the
-- others of their keys.
local function failed(ids, freed)
  note_shared(ids, read_entries(ids))
  for _, id in ipairs(ids) do
    local e = entries[id]
    local key = e and key_in(e)
    if e then set_member(runner(key, id), true) end
    if e and is_sole(e) then
      keyed.share(key, place_in(e), id)
    elseif e then
      local state = state_of(key)
      if state and release(key, state, id) then free(freed, key) end
    end
  end
end

-- settled notes the settlements: all reports that all were valid; otherwise valid has the
-- numbers of those that were. Want is how many timers the exchange is to claim.
function by_key.settled(valid, all, base, acks, nacks, rejects, releases, want, now_text)
  if key_rate then key_rate.open(now_text) end
  local freed = {}
  local function valid_ids(from, count)
    local ids, places = {}, {}
    for i = 1, count do
      if all or valid[from + i] then ids[#ids + 1], places[#places + 1] = ARGV[base + from + i], i end
    end
    return ids, places
  end
  if acks > 0 then remove(valid_ids(0, acks), freed) end
  if nacks > 0 and skips then failed(valid_ids(acks, nacks), freed) end
  if rejects > 0 then remove(valid_ids(acks + nacks, rejects), freed) end
  if releases > 0 then
    local ids, places = valid_ids(acks + nacks + rejects, releases)
    released(ids, freed)
    if key_rate then
      local _, charges = limits.charges()
      for i, place in ipairs(places) do places[i] = charges[place] or 0 end
      key_rate.give_back(ids, places)
    end
  end
  local left = keyed.postponed(POSTPONED)
  unfinished = unfinished or #left == POSTPONED -- there may be more
  read_states(left)
  for _, key in ipairs(left) do freed[key] = AT_ONCE end
  wake(freed, number(now_text), want)
  if key_rate then keyed.write_due(now_text) end
end
