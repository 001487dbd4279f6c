-- Keys: put before the scripts that write or end timers. It has the order of the timers
-- of a key, and which of them hold it; docs/decisions/0023-keys.md says why so.
--
-- The hash of keys has for each timer with a key its entry: its place among the timers
-- of the key, which is its instant in µs and the number of its schedule, and the key.
-- The hash of states has a field for each key that has timers: 's' and the id, if it
-- has a sole timer; else 'm' and the ids that hold the key, each after its length. The
-- field '' counts schedules. The sorted set of the order has the timers of keys with
-- several, without those that hold the key.

-- PARKED is the score of a due timer that waits for its key: the year 10000, in which
-- no timer can be scheduled.
local PARKED = '253402300800'

local PLACE = 33 -- bytes of a place: 18 of the instant, 15 of the number

local keyed = {}
local key_of, key_order, key_states, key_timeline, key_leases
local states, changed = {}, {}
local linked, unlinked = {}, {} -- changes of the order that are not written yet

-- open names the keys in Redis; it comes before all other functions.
function keyed.open(of, order, busy, timeline, leases)
  key_of, key_order, key_states, key_timeline, key_leases = of, order, busy, timeline, leases
end

function keyed.parked(score) return score and same(score, PARKED) end

local function micros(instant)
  return string.format('%018.0f', math.max(0, math.min(instant * 1e6, 9.9e17)))
end
keyed.micros = micros

-- place_of returns the place of a timer and its key, or nil if it has none.
local function place_of(entry)
  if not entry or #entry <= PLACE or not string.find(string.sub(entry, 1, PLACE), '^%d+$') then return nil end
  return string.sub(entry, 1, PLACE), string.sub(entry, PLACE + 1)
end
keyed.place_of = place_of

-- instant_of is the instant of a place, as a text.
local function instant_of(place) return text(tonumber(string.sub(place, 1, 18)) / 1e6) end
keyed.instant_of = instant_of

local function prefix_of(key) return string.format('%03d', #key) .. key end
local function member(key, place, id) return prefix_of(key) .. place .. id end

local function link(key, place, id) linked[#linked + 1], linked[#linked + 2] = '0', member(key, place, id) end
local function unlink(key, place, id) unlinked[#unlinked + 1] = member(key, place, id) end
keyed.link = link

-- write_order writes the changes of the order. Nothing is linked and unlinked in one
-- go: the callers write it between.
local function write_order()
  if #unlinked > 0 then
    variadic('ZREM', key_order, unlinked, 1, #unlinked)
    unlinked = {}
  end
  if #linked > 0 then
    variadic('ZADD', key_order, linked, 1, #linked)
    linked = {}
  end
end

local function read_state(value)
  if string.sub(value, 1, 1) == 's' then return {sole = string.sub(value, 2), held = {}} end
  local held, pos = {}, 2
  while pos <= #value do
    local _, stop, n = string.find(value, '^(%d+) ', pos)
    if not stop then break end
    held[#held + 1] = string.sub(value, stop + 1, stop + n)
    pos = stop + n + 1
  end
  return {held = held}
end

-- load reads the states of keys that were not read yet.
function keyed.load(list)
  local missing = {}
  for _, key in ipairs(list) do
    if states[key] == nil then
      missing[#missing + 1] = key
      states[key] = false
    end
  end
  local found = collect('HMGET', key_states, missing, 1, #missing)
  for i, key in ipairs(missing) do
    if found[i] then states[key] = read_state(found[i]) end
  end
end

function keyed.state(key) return states[key] end

function keyed.set_state(key, state) states[key], changed[key] = state, true end

-- write writes all changes.
function keyed.write()
  write_order()
  local set, dropped = {}, {}
  for key in pairs(changed) do
    local state = states[key]
    if not state then
      dropped[#dropped + 1] = key
    elseif state.sole then
      set[#set + 1], set[#set + 2] = key, 's' .. state.sole
    else
      local held = {'m'}
      for _, id in ipairs(state.held) do held[#held + 1] = #id .. ' ' .. id end
      set[#set + 1], set[#set + 2] = key, table.concat(held)
    end
  end
  changed = {}
  variadic('HDEL', key_states, dropped, 1, #dropped)
  variadic('HSET', key_states, set, 1, #set)
end

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
keyed.release = release

function keyed.holds(state, id)
  for _, held in ipairs(state.held) do
    if held == id then return true end
  end
  return false
end

-- hold takes a timer out of the order, and makes it hold its key if notes is true.
function keyed.hold(key, state, place, id, notes)
  unlink(key, place, id)
  if notes then
    state.held[#state.held + 1], changed[key] = id, true
  end
end

-- several notes that a key has another timer beside its sole one.
function keyed.several(key, state)
  local id = state.sole
  if not id then return end
  state.sole, changed[key] = nil, true
  local score = redis.call('ZSCORE', key_timeline, id)
  local place = place_of(redis.call('HGET', key_of, id))
  if not score or not place then return end
  local r = current(redis.call('HGET', key_leases, id), score)
  if r and (r.state == 'l' or r.claims > 0) then
    state.held[1] = id
  else
    link(key, place, id)
  end
end

-- add puts a timer that is in the timeline, with an entry, among those of its key.
function keyed.add(key, place, id)
  local state = states[key]
  if not state then
    keyed.set_state(key, {sole = id, held = {}})
  elseif state.sole ~= id then
    keyed.several(key, state)
    link(key, place, id)
  end
end

-- remove removes a timer from those of its key.
function keyed.remove(key, place, id)
  local state = states[key]
  if not state then return end
  if state.sole then
    if state.sole == id then keyed.set_state(key, false) end
  elseif not release(key, state, id) then
    unlink(key, place, id)
  end
end

-- make_due makes a parked timer due now.
local function make_due(id, place, now_text)
  local r = current(redis.call('HGET', key_leases, id), PARKED) or
    {claims = 0, failures = 0, activation = instant_of(place), first = '', err = ''}
  r.before = r.activation
  redis.call('ZADD', key_timeline, now_text, id)
  redis.call('HSET', key_leases, id, record('w', r, now_text), '', SENTINEL)
end
keyed.make_due = make_due

-- first returns up to count timers of a key in their order: a list of ids, of places
-- and of scores. It removes entries of timers that no longer exist.
function keyed.first(key, count)
  write_order()
  local prefix = prefix_of(key)
  local ids, places, scores = {}, {}, {}
  for _ = 1, 100 do
    if #ids >= count then break end
    local want = math.min(count - #ids, CHUNK)
    local found = redis.call('ZRANGEBYLEX', key_order, '[' .. prefix, '(' .. prefix .. '\255', 'LIMIT', #ids, want)
    local candidates, gone = {}, {}
    for i, m in ipairs(found) do candidates[i] = string.sub(m, #prefix + PLACE + 1) end
    local at = collect('ZMSCORE', key_timeline, candidates, 1, #candidates)
    for i, id in ipairs(candidates) do
      if at[i] then
        local n = #ids + 1
        ids[n], places[n], scores[n] = id, string.sub(found[i], #prefix + 1, #prefix + PLACE), at[i]
      else
        gone[#gone + 1] = found[i]
      end
    end
    variadic('ZREM', key_order, gone, 1, #gone)
    if #found < want then break end
  end
  return ids, places, scores
end

-- wake makes the first timers of a key due, up to count, if they are parked; it
-- returns how many it woke.
function keyed.wake(key, count, now_text)
  local state = states[key]
  if not state or state.sole or count < 1 then return 0 end
  local ids, places, scores = keyed.first(key, count)
  local woken = 0
  for i, id in ipairs(ids) do
    if keyed.parked(scores[i]) then
      make_due(id, places[i], now_text)
      woken = woken + 1
    end
  end
  if #ids == 0 and #state.held == 0 then keyed.set_state(key, false) end
  return woken
end

-- verify drops from a key those that hold it and no longer exist, as after a peer has
-- removed them, or that a peer has moved into the future.
function keyed.verify(key, state, now)
  local ids = {unpack(state.held)}
  local scores = collect('ZMSCORE', key_timeline, ids, 1, #ids)
  local records = collect('HMGET', key_leases, ids, 1, #ids)
  for i, id in ipairs(ids) do
    if not scores[i] then
      release(key, state, id)
    elseif number(scores[i]) > now and not current(records[i], scores[i]) then
      release(key, state, id)
      local place = place_of(redis.call('HGET', key_of, id))
      if place then keyed.move(key, place, id, number(scores[i])) end
    end
  end
end

-- move gives a timer of the order the place of another instant, and returns it.
function keyed.move(key, place, id, instant)
  write_order()
  unlink(key, place, id)
  write_order()
  place = micros(instant) .. string.sub(place, 19)
  redis.call('HSET', key_of, id, place .. key)
  link(key, place, id)
  return place
end

-- schedule notes timers that were written: for each id, key, instant, and the entry and
-- the score that the id had, or false; a key of nil is that of the entry. It returns
-- how many timers it woke.
function keyed.schedule(list, now_text)
  if #list == 0 then return 0 end
  local names, entries, woken = {}, {}, 0
  for _, t in ipairs(list) do
    t.place, t.old = place_of(t.entry)
    t.key = t.key or t.old
    names[#names + 1] = t.key
    if t.old then names[#names + 1] = t.old end
  end
  keyed.load(names)
  local freed = {}
  for _, t in ipairs(list) do
    if t.old then
      keyed.remove(t.old, t.place, t.id)
      if not keyed.parked(t.score) then freed[t.old] = (freed[t.old] or 0) + 1 end
    end
  end
  write_order()
  local number_of = redis.call('HINCRBY', key_states, '', #list) - #list
  for i, t in ipairs(list) do
    t.place = micros(t.instant) .. string.format('%015.0f', number_of + i)
    entries[2 * i - 1], entries[2 * i] = t.id, t.place .. t.key
  end
  variadic('HSET', key_of, entries, 1, #entries)
  for _, t in ipairs(list) do keyed.add(t.key, t.place, t.id) end
  for key, count in pairs(freed) do woken = woken + keyed.wake(key, count, now_text) end
  keyed.write()
  return woken
end

-- ended notes timers that are gone from the timeline, where they had these scores, and
-- returns how many it woke.
function keyed.ended(ids, scores, now_text)
  if redis.call('EXISTS', key_of) == 0 then return 0 end
  local entries, names, dropped, freed, woken = collect('HMGET', key_of, ids, 1, #ids), {}, {}, {}, 0
  for i = 1, #ids do
    local place, key = place_of(entries[i])
    if place then names[#names + 1], dropped[#dropped + 1] = key, ids[i] end
  end
  keyed.load(names)
  for i = 1, #ids do
    local place, key = place_of(entries[i])
    if place then
      keyed.remove(key, place, ids[i])
      if not keyed.parked(scores[i]) then freed[key] = (freed[key] or 0) + 1 end
    end
  end
  variadic('HDEL', key_of, dropped, 1, #dropped)
  for key, count in pairs(freed) do woken = woken + keyed.wake(key, count, now_text) end
  keyed.write()
  return woken
end
