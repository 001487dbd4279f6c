-- The claim of timers with keys: put after flow_keys.lua. It selects the due timers that
-- may be claimed, and parks the others.

-- verified reports whether a blocked key is free after all.
local checked = {}
local function verified(key, state, now)
  if not checked[key] then
    checked[key] = true
    keyed.verify(key, state, now)
    if key_rate and not bounded then key_rate.release_running(key, state, waits) end
  end
  return free_of(state) > 0
end

-- is_next reports whether a timer is among the first of its key that may run. Those
-- before it that a peer has moved into the future get their new places.
local function is_next(id, key, state, now)
  for _ = 1, 20 do
    local ids, places, scores = first_of(key, free_of(state))
    local moved = false
    for i, first in ipairs(ids) do
      if first == id then return true end
      local at = number(scores[i])
      if keyed.parked(scores[i]) then
        if make_due(key, places[i], first) then woken = woken + 1 end
      elseif at > now then
        move(key, places[i], first, at)
        moved = true
      end
    end
    if not moved then return false end
  end
  return false
end

-- admits reports whether a due timer of a key with several may be claimed: it holds the
-- key, or it is among the first that may; it holds the key then. The others are in the
-- order of their key.
local function admits(id, score, r, now)
  local e = entries[id]
  local key, place = key_in(e), place_in(e)
  local state = state_of(key)
  if not state then
    state = {held = {}}
    set_state(key, state)
  end
  keyed.several(key, state)
  if holds(state, id) then return true end
  if free_of(state) > 0 or verified(key, state, now) then
    local free = limit == math.huge or firsts[id] or r and r.claims > 0
    if not free then
      local instant = number(r and r.activation or score)
      if instant > -math.huge and micros(instant) ~= string.sub(place, 1, 18) then
        place = move(key, place, id, instant)
      else
        link(key, place, id)
      end
      free = is_next(id, key, state, now)
    end
    if free then
      keyed.hold(key, state, place, id, bounded)
      return true
    end
  end
  link(key, place, id)
  return false
end

-- starts takes a token for a due timer that may be claimed. If its key has none, the timer
-- holds its key until the next one, and starts returns false.
local function starts(id, score)
  local key, sole = key_in(entries[id]), is_sole(entries[id])
  local state = not sole and state_of(key)
  if key_rate.tokens(key) < 1 then
    if state and not holds(state, id) then
      state.held[#state.held + 1] = id
      set_state(key, state)
    end
    waits[id], passed = key_rate.wait(id, key, score), true
    return false
  end
  key_rate.take(key)
  started[id] = true
  if state and not bounded and release(key, state, id) then passes[key] = true end
  return true
end

-- park takes timers out of the due ones. Stored has the lease records of some.
local function park(ids, scores, stored)
  if #ids == 0 then return end
  local parked, kept, lost = {}, {}, {}
  for i, id in ipairs(ids) do
    if stored[id] == nil then stored[id] = redis.call('HGET', KEYS[3], id) end
    local r = current(stored[id], scores[i])
    parked[#parked + 1], parked[#parked + 2] = PARKED, id
    if r then
      kept[#kept + 1], kept[#kept + 2] = id, record('w', r, PARKED)
    elseif stored[id] then
      lost[#lost + 1] = id
    end
  end
  variadic('ZADD', KEYS[1], parked, 1, #parked)
  variadic('HDEL', KEYS[3], lost, 1, #lost)
  variadic('HSET', KEYS[3], kept, 1, #kept)
  passed = true
end

-- read_records returns the stored lease records of timers by their ids. Those that were
-- woken here are the next of their keys, so nothing depends on their records.
local function read_records(ids)
  local unknown, stored = {}, {}
  for _, id in ipairs(ids) do
    if not firsts[id] then unknown[#unknown + 1] = id end
  end
  local found = collect('HMGET', KEYS[3], unknown, 1, #unknown)
  for i, id in ipairs(unknown) do stored[id] = found[i] end
  return stored
end

-- take adds up to want of the due timers with these ids, whose scores are in found, to
-- out. It parks those of shared before them that may not be claimed.
local function take(out, want, ids, found, shared, now)
  local stored, others = read_records(shared), {}
  for _, id in ipairs(shared) do others[id] = true end
  local parked, scores = {}, {}
  for i, id in ipairs(ids) do
    if #out == 2 * want then break end
    local score = found[2 * i]
    if others[id] and not admits(id, score, current(stored[id], score), now) then
      parked[#parked + 1], scores[#scores + 1] = id, score
    elseif not key_rate or not entries[id] or starts(id, score) then
      out[#out + 1], out[#out + 2] = id, score
    end
  end
  park(parked, scores, stored)
  if key_rate then key_rate.write_waits(waits) end
end

-- due returns the ids and scores of up to want due timers that may be claimed, and
-- parks those before them that may not.
function by_key.due(want, now, now_text)
  local out, looked, ask = {}, 0, want
  wanted = want
  repeat
    local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now_text, 'WITHSCORES', 'LIMIT', #out / 2, ask)
    local ids = {}
    for i = 1, #found / 2 do ids[i] = found[2 * i - 1] end
    local read = read_entries(ids)
    if looked == 0 and not key_rate and all_sole(read) then
      taken = ids
      return found
    end
    local shared = note_shared(ids, read)
    if key_rate then key_rate.load(ids) end
    take(out, want, ids, found, shared, now)
    looked = looked + #ids
    local last = #ids < ask
    ask = math.max(want - #out / 2, 200)
  until last or #out == 2 * want or looked >= LOOKED
  for i = 1, #out / 2 do taken[i] = out[2 * i - 1] end
  return out
end

-- unclaimed notes the due timers that were not claimed: those that the claim has
-- dead-lettered, that have no payload, or that did not fit into the answer.
local function unclaimed(claimed)
  local has, left, gone, kept, freed = {}, {}, {}, {}, {}
  for i = 2, #claimed, 2 do has[claimed[i]] = true end
  for _, id in ipairs(taken) do
    if not has[id] then left[#left + 1] = id end
  end
  local scores = collect('ZMSCORE', KEYS[1], left, 1, #left)
  for i, id in ipairs(left) do
    local list = scores[i] and kept or gone
    list[#list + 1] = id
  end
  if key_rate then key_rate.refund(left) end
  remove(gone, freed)
  released(kept, {})
  wake(freed)
end

-- hold_back wakes the next timers of the keys that those who waited for a token held, and
-- makes woken timers wait whose keys have no token: otherwise the next exchange does so.
local function hold_back(now_text)
  wake(passes)
  keyed.write_due(now_text)
  local ids, last = {}, nil
  for id in pairs(firsts) do
    if not started[id] and not waits[id] then ids[#ids + 1] = id end
  end
  key_rate.load(ids)
  for _, id in ipairs(ids) do
    local key = key_in(entries[id])
    if key_rate.tokens(key) < 1 then
      keyed.hold(key, state_of(key), place_in(entries[id]), id, true)
      waits[id] = key_rate.wait(id, key, now_text)
      woken = woken - 1
      last = math.max(last or 0, waits[id])
    end
  end
  key_rate.write_waits(waits)
  key_rate.write()
  return last
end

-- after notes which timers were claimed, and writes all changes. It returns until when
-- timers become due of which other nodes are to learn, or nil.
function by_key.after(claimed, leased, now_text)
  if leased < #taken then unclaimed(claimed) end
  local last = key_rate and hold_back(now_text)
  keyed.write(now_text)
  if last and leased >= wanted then return last end -- this node may be busy then
  return woken > 0 and number(now_text) or nil
end

-- head returns the head of the timeline. If timers were parked and others are due, it is
-- a little later: the poller then does not take the topic for one that cannot be claimed.
function by_key.head(h, now)
  if passed and h and h <= now then return now + 1e-6 end
  return h
end

-- orphans reports whether there are keys of timers that no longer exist.
function by_key.orphans(live) return redis.call('HLEN', KEYS[8]) > live end
