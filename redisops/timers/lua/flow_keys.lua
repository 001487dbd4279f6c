-- Flow by key: put before exchange.lua for topics whose timers have keys, after flow.lua
-- and keys.lua. The keys after that of flow control are the keys, their order and their
-- states; the last argument but one is the most timers of a key at once, 0 for no
-- bound, and a 1 if a timer that waits for its retry frees its key, else a 0.

local by_key = {}
flow.by_key = by_key

-- LOOKED bounds how many due timers one exchange looks at.
local LOOKED = 1000

local limit, skips = string.match(ARGV[#ARGV - 1], '^(%d+) ([01])$')
limit, skips = tonumber(limit), skips == '1'
if limit == 0 then limit = math.huge end
keyed.open(KEYS[8], KEYS[9], KEYS[10], KEYS[1], KEYS[3])

local entries = {}      -- by id, of what this exchange has read
local taken, t = {}, 0  -- the due timers with keys that may be claimed
local taking = {}       -- a set of the same
local woken, passed = 0, false

local function free_of(state) return limit - #state.held end

local function read_entries(list)
  local found, names = collect('HMGET', KEYS[8], list, 1, #list), {}
  for i, id in ipairs(list) do
    local place, key = keyed.place_of(found[i])
    entries[id] = place and {place = place, key = key} or false
    if place then names[#names + 1] = key end
  end
  keyed.load(names)
end

local function wake(keys, now_text)
  for key in pairs(keys) do
    local state = keyed.state(key)
    if state then woken = woken + keyed.wake(key, math.min(free_of(state), CHUNK), now_text) end
  end
end

-- of returns the key of a timer, or nil.
function by_key.of(id)
  if entries[id] == nil then read_entries({id}) end
  return entries[id] and entries[id].key
end

-- settled notes the settlements: all reports that all were valid, and were acks.
-- Otherwise valid has the ids of those that were.
function by_key.settled(valid, all, base, acks, nacks, rejects, releases, now_text)
  local list, ended = {}, {}
  for i = 1, acks + nacks + rejects + releases do
    local id = ARGV[base + i]
    local nacked = i > acks and i <= acks + nacks
    if (all or valid[id]) and (skips or not nacked) then
      list[#list + 1] = id
      ended[#list] = (i <= acks or i > acks + nacks and i <= acks + nacks + rejects) and 'e' or nacked and 'n' or 'r'
    end
  end
  if #list == 0 then return end
  read_entries(list)
  local gone, freed = {}, {}
  for i, id in ipairs(list) do
    local e = entries[id]
    local state = e and keyed.state(e.key)
    if e and ended[i] == 'e' then
      gone[#gone + 1] = id
      keyed.remove(e.key, e.place, id)
      if state and not state.sole then freed[e.key] = true end
    elseif state and ended[i] == 'n' and state.sole == id then
      keyed.set_state(e.key, {held = {}})
    elseif state and not state.sole and keyed.release(e.key, state, id) then
      freed[e.key] = true
      if ended[i] == 'r' then keyed.link(e.key, e.place, id) end
    end
  end
  variadic('HDEL', KEYS[8], gone, 1, #gone)
  wake(freed, now_text)
end

-- verified reports whether a blocked key is free after all.
local checked = {}
local function verified(key, state, now)
  if not checked[key] then
    checked[key] = true
    keyed.verify(key, state, now)
  end
  return free_of(state) > 0
end

-- admits reports whether a due timer of a key with several may be claimed: it holds the
-- key, or it is among the first that may. Those before it that a peer has moved
-- into the future get their new places.
local function admits(id, e, state, score, r, now)
  if keyed.holds(state, id) then return true end
  if free_of(state) <= 0 and not verified(e.key, state, now) then return false end
  if limit == math.huge or r and r.claims > 0 then return true end
  local instant = number(r and r.activation or score)
  if instant > -math.huge and keyed.micros(instant) ~= string.sub(e.place, 1, 18) then
    e.place = keyed.move(e.key, e.place, id, instant)
  else
    keyed.link(e.key, e.place, id)
  end
  for _ = 1, 20 do
    local ids, places, scores = keyed.first(e.key, free_of(state))
    local moved = false
    for i, first in ipairs(ids) do
      if first == id then return true end
      local at = number(scores[i])
      if keyed.parked(scores[i]) then
        keyed.make_due(first, places[i], text(now))
        woken = woken + 1
      elseif at > now then
        keyed.move(e.key, places[i], first, at)
        moved = true
      end
    end
    if not moved then return false end
  end
  return false
end

-- due returns the ids and scores of up to want due timers that may be claimed, and
-- parks those before them that may not.
function by_key.due(want, now, now_text)
  local out, n, looked, more = {}, 0, 0, true
  while more and n < want and looked < LOOKED do
    local ask = looked == 0 and want or math.max(want - n, 200)
    local got = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now_text, 'WITHSCORES', 'LIMIT', n, ask)
    local ids, contended = {}, false
    for i = 1, #got, 2 do ids[#ids + 1] = got[i] end
    more = #ids == ask
    looked = looked + #ids
    read_entries(ids)
    for _, id in ipairs(ids) do
      local e = entries[id]
      local state = e and keyed.state(e.key)
      contended = contended or state and state.sole ~= id
    end
    local records = contended and collect('HMGET', KEYS[3], ids, 1, #ids) or {}
    local parked, kept, lost = {}, {}, {}
    for i, id in ipairs(ids) do
      if n == want then break end
      local e, score, free = entries[id], got[2 * i], true
      if e then
        local state = keyed.state(e.key)
        if not state then
          state = {sole = id, held = {}}
          keyed.set_state(e.key, state)
        elseif state.sole ~= id then
          if state.sole and taking[state.sole] then
            keyed.set_state(e.key, {held = {state.sole}})
            state = keyed.state(e.key)
          end
          keyed.several(e.key, state)
          if not contended then records[i] = redis.call('HGET', KEYS[3], id) end
          local r = current(records[i], score)
          free = admits(id, e, state, score, r, now)
          if free then
            if not keyed.holds(state, id) then keyed.hold(e.key, state, e.place, id, limit < math.huge) end
          else
            parked[#parked + 1], parked[#parked + 2] = PARKED, id
            keyed.link(e.key, e.place, id)
            if r then
              kept[#kept + 1], kept[#kept + 2] = id, record('w', r, PARKED)
            elseif records[i] then
              lost[#lost + 1] = id
            end
          end
        end
      end
      if free then
        n = n + 1
        out[2 * n - 1], out[2 * n] = id, score
        if e then
          t = t + 1
          taken[t], taking[id] = id, true
        end
      end
    end
    variadic('ZADD', KEYS[1], parked, 1, #parked)
    passed = passed or #parked > 0
    variadic('HDEL', KEYS[3], lost, 1, #lost)
    variadic('HSET', KEYS[3], kept, 1, #kept)
  end
  return out
end

-- after notes which timers were claimed, writes all changes, and reports whether it
-- made timers due.
function by_key.after(claimed, leased, now_text)
  if t > 0 and leased < t then
    local has, freed, gone = {}, {}, {}
    for i = 2, #claimed, 2 do has[claimed[i]] = true end
    local scores = collect('ZMSCORE', KEYS[1], taken, 1, t)
    for i, id in ipairs(taken) do
      local e = entries[id]
      local state = keyed.state(e.key)
      if not has[id] and not scores[i] then -- dead-lettered by the claim, or without a payload
        gone[#gone + 1] = id
        keyed.remove(e.key, e.place, id)
        if state and not state.sole then freed[e.key] = true end
      elseif not has[id] and state and not state.sole and keyed.release(e.key, state, id) then
        keyed.link(e.key, e.place, id) -- it did not fit into the answer
      end
    end
    variadic('HDEL', KEYS[8], gone, 1, #gone)
    wake(freed, now_text)
  end
  keyed.write()
  return woken > 0
end

-- head returns the head of the timeline. If timers were parked and others are due, it is
-- a little later: the poller then does not take the topic for one that cannot be claimed.
function by_key.head(h, now)
  if passed and h and h <= now then return now + 1e-6 end
  return h
end

-- orphans reports whether there are keys of timers that no longer exist.
function by_key.orphans(live) return redis.call('HLEN', KEYS[8]) > live end
