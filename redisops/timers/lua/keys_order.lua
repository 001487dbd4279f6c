-- The order of the timers of a key: put after keys.lua. The sorted set of the order has
-- the timers of keys with several, without those that hold the key. Its members sort by
-- key, place and id.

local linked, unlinked = {}, {} -- changes of the order that are not written yet
local to_wake, waking = {}, {}  -- ids of parked timers that become due, and the set of those that still do

local function member(key, place, id) return prefix_of(key) .. place .. id end

local function link(key, place, id) linked[#linked + 1], linked[#linked + 2] = '0', member(key, place, id) end
local function unlink(key, place, id) unlinked[#unlinked + 1] = member(key, place, id) end

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

-- woken_record is the lease record of a parked timer that becomes due. Stored is the one
-- in Redis, or false.
function keyed.woken_record(id, stored)
  local r = current(stored, PARKED) or
    {claims = 0, failures = 0, activation = instant_of(place_in(entries[id])), first = '', err = ''}
  r.before = r.activation
  return r
end

-- write_due makes the timers due that were woken.
function keyed.write_due(now_text)
  local ids = {}
  for _, id in ipairs(to_wake) do
    if waking[id] then ids[#ids + 1], waking[id] = id, nil end
  end
  to_wake = {}
  if #ids == 0 then return end
  local stored = collect('HMGET', key_leases, ids, 1, #ids)
  local scored, recorded = {}, {'', SENTINEL}
  for i, id in ipairs(ids) do
    scored[2 * i - 1], scored[2 * i] = now_text, id
    recorded[2 * i + 1], recorded[2 * i + 2] = id, record('w', keyed.woken_record(id, stored[i]), now_text)
  end
  variadic('ZADD', key_timeline, scored, 1, #scored)
  variadic('HSET', key_leases, recorded, 1, #recorded)
end

-- write writes all changes.
function keyed.write(now_text)
  keyed.write_due(now_text)
  write_order()
  write_states()
end

-- make_due makes a parked timer due, unless that is done, which it reports.
local function make_due(key, place, id)
  if waking[id] then return false end
  entries[id], waking[id] = place .. 'm' .. key, true
  to_wake[#to_wake + 1] = id
  return true
end

-- sleep makes a timer that was woken, and is not written as due yet, stay as it is.
function keyed.sleep(id) waking[id] = nil end

-- hold takes a timer out of the order, and makes it hold its key if notes is true.
function keyed.hold(key, state, place, id, notes)
  unlink(key, place, id)
  if notes then
    state.held[#state.held + 1], changed[key] = id, true
  end
end

-- several notes that a key has, or had, another timer beside its sole one. That one
-- holds the key if it was claimed or waits for a token; else it is put into the order.
function keyed.several(key, state)
  local id = state.sole
  if not id then return end
  state.sole, changed[key] = nil, true
  local place = place_of(redis.call('HGET', key_of, id))
  if not place then return end
  write_entry(id, place, key)
  local score = redis.call('ZSCORE', key_timeline, id)
  if not score then return end
  local r = current(redis.call('HGET', key_leases, id), score)
  if r and (r.state == 'l' or r.failures > 0 or waits_for_token(r)) then
    state.held[1] = id
  else
    link(key, place, id)
  end
end

-- share notes that the sole timer of a key neither holds it nor is in its order.
function keyed.share(key, place, id)
  write_entry(id, place, key)
  set_state(key, {held = {}})
end

-- remove removes a timer from those of its key.
function keyed.remove(key, place, id)
  local state = state_of(key)
  if not state then return end
  if state.sole then
    if state.sole == id then set_state(key, false) end
  elseif not release(key, state, id) then
    unlink(key, place, id)
  end
end

-- first_of returns up to count timers of a key in their order: a list of ids, of places
-- and of scores. It removes entries of timers that no longer exist.
local function first_of(key, count)
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

-- wake makes the first timers of a key due that are parked, up to count. It looks at count
-- timers of the key, and at beyond further ones if some of those are due already. It
-- returns those it woke; write_due writes it.
function keyed.wake(key, count, beyond)
  local state, woken = state_of(key), {}
  if not state or state.sole or count < 1 then return woken end
  local ids, places, scores = first_of(key, count + beyond)
  for i, id in ipairs(ids) do
    if #woken == count then break end
    if keyed.parked(scores[i]) and make_due(key, places[i], id) then woken[#woken + 1] = id end
  end
  if #ids == 0 and #state.held == 0 then set_state(key, false) end
  return woken
end

-- move gives a timer of the order the place of another instant, and returns it.
local function move(key, place, id, instant)
  write_order()
  unlink(key, place, id)
  write_order()
  place = micros(instant) .. string.sub(place, 19)
  write_entry(id, place, key)
  link(key, place, id)
  return place
end

-- verify drops from a key those that hold it and no longer exist, as after a peer has
-- removed them, or that a peer has moved into the future. Those that were woken in this
-- exchange hold it although they are parked in Redis.
function keyed.verify(key, state, now)
  local ids = {unpack(state.held)}
  local scores = collect('ZMSCORE', key_timeline, ids, 1, #ids)
  local records = collect('HMGET', key_leases, ids, 1, #ids)
  for i, id in ipairs(ids) do
    if not scores[i] then
      release(key, state, id)
    elseif not waking[id] and number(scores[i]) > now and not current(records[i], scores[i]) then
      release(key, state, id)
      local place = place_of(redis.call('HGET', key_of, id))
      if place then move(key, place, id, number(scores[i])) end
    end
  end
end
