-- The order of the timers of a key: put after keys_states.lua. The sorted set of the order
-- has the timers of keys with several, without those that hold the key. Its members sort by
-- key, place and id.
--
-- A member of '000' and a key is a key at which the next exchange has to look, because the
-- script before it would have looked at too many timers.
--
-- Gives: ROOM room unfinished woken_here member link unlink make_due move line_of finished
--   read advance parked_any

-- room is how many timers of orders this script may still look at: enough for the keys of
-- 500 timers that end together, and few enough that the script blocks Redis shortly;
-- flow_key_rate.lua lowers it. PAGE is how many one page of a line has.
local ROOM, PAGE = 600, 500
local room = ROOM

local UNFINISHED = '000'
local unfinished = false

-- runs_apart says that timers may run, or wait for their retries, without holding their keys:
-- see runner.
keyed.runs_apart = true

local to_wake, waking = {}, {} -- ids of parked timers that become due, and the set of those that still do
local woken_here = 0           -- how many timers were made due

local function member(key, place, id) return prefix_of(key) .. place .. id end

local function link(key, place, id) set_member(member(key, place, id), true) end
local function unlink(key, place, id) set_member(member(key, place, id), false) end

-- postpone has the next exchange look at a key.
local function postpone(key)
  unfinished = true
  set_member(UNFINISHED .. key, true)
end

-- postponed returns keys at which an exchange has to look. They are no longer noted.
function keyed.postponed(most)
  local keys = {}
  for i, m in ipairs(redis.call('ZRANGEBYLEX', key_order, '[' .. UNFINISHED, '(001', 'LIMIT', '0', most)) do
    keys[i] = string.sub(m, #UNFINISHED + 1)
    set_member(m, false)
  end
  return keys
end

-- unfinished reports whether this script has left something to the next exchange.
function keyed.unfinished() return unfinished end

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
  write_states()
  write_order()
end

-- make_due makes a parked timer due, unless that is done, which it reports.
local function make_due(key, place, id)
  if waking[id] then return false end
  entries[id], waking[id] = place .. 'm' .. key, true
  to_wake[#to_wake + 1] = id
  woken_here = woken_here + 1
  return true
end

-- sleep makes a timer that was woken, and is not written as due yet, stay as it is.
function keyed.sleep(id) waking[id] = nil end

-- goes_on reports whether a timer with that record and score goes on by itself, so that it
-- may hold its key. A timer in the future without a record was moved there by a peer.
local function goes_on(r, score, now)
  if keyed.parked(score) then return false end
  return number(score) <= now or r and (r.state == 'l' or r.tried or waits_for_token(r))
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
  if r and goes_on(r, score, -math.huge) then
    hold(key, state, id)
  else
    link(key, place, id)
    if keyed.parked(score) then make_due(key, place, id) end
  end
end

-- share notes that the sole timer of a key neither holds it nor is in its order.
function keyed.share(key, place, id)
  write_entry(id, place, key)
  set_state(key, {held = {}})
end

-- remove removes a timer from those of its key.
function keyed.remove(key, place, id)
  if keyed.runs_apart then set_member(runner(key, id), false) end
  local state = state_of(key)
  if not state then return end
  if state.sole then
    if state.sole == id then set_state(key, false) end
  elseif not release(key, state, id) then
    unlink(key, place, id)
  end
end

-- move gives a timer of the order the place of another instant, and returns it.
local function move(key, place, id, instant)
  unlink(key, place, id)
  place = micros(instant) .. string.sub(place, 19)
  write_entry(id, place, key)
  link(key, place, id)
  return place
end

-- A line is the timers of a key in their order, as far as they are read: ask is how many
-- are read next.
local function line_of(key, ask)
  return {key = key, prefix = prefix_of(key), ask = ask, found = {}, scores = {}, at = 0}
end

-- finished reports whether a line has no more timers that are due or parked.
local function finished(line) return line.ended and line.at == #line.found end

-- read reads the next timers of lines of which all that were read are passed.
local function read(lines)
  write_order()
  local ids = {}
  for _, line in ipairs(lines) do
    local n = math.min(line.ask, PAGE, room)
    line.found, line.scores, line.at = {}, {}, 0
    if n > 0 then
      local from = line.last and '(' .. line.last or '[' .. line.prefix
      line.found = redis.call('ZRANGEBYLEX', key_order, from, '(' .. line.prefix .. '\255', 'LIMIT', '0', n)
      line.ended = #line.found < n
      line.ask, room = 2 * line.ask, room - math.max(#line.found, 1)
    end
    for _, m in ipairs(line.found) do ids[#ids + 1] = string.sub(m, #line.prefix + PLACE + 1) end
  end
  local scores, n = collect('ZMSCORE', key_timeline, ids, 1, #ids), 0
  for _, line in ipairs(lines) do
    for i = 1, #line.found do line.scores[i] = scores[n + i] end
    n = n + #line.found
  end
end

-- step returns the next timer of a line that is due or parked, of those that were read:
-- its id, place and score. It removes members whose timers no longer exist, and gives
-- those their new places that a peer has moved into the future, which have no record.
local function step(line, now)
  while line.at < #line.found do
    line.at = line.at + 1
    local m, score = line.found[line.at], line.scores[line.at]
    local place = string.sub(m, #line.prefix + 1, #line.prefix + PLACE)
    local id = string.sub(m, #line.prefix + PLACE + 1)
    line.last = m
    line.alive = line.alive or score
    if not score then
      set_member(m, false)
    elseif keyed.parked(score) or number(score) <= now then
      return id, place, score
    elseif string.sub(place, 1, 18) > micros(now) then -- and so are all after it
      line.ended, line.at = true, #line.found
    elseif not current(redis.call('HGET', key_leases, id), score) then
      move(line.key, place, id, number(score))
    end -- else a node without limits per key has it, or it waits for its retry: its place is right
  end
end

-- advance returns the same, and reads on. It returns nil also if there is no room to.
local function advance(line, now)
  repeat
    local id, place, score = step(line, now)
    if id then return id, place, score end
    if line.ended or room <= 0 then return nil end
    read({line})
  until false
end

-- wake_next wakes timers of a line among those that were read, and reports whether it is
-- done.
local function wake_next(line, now, woken)
  while line.left > 0 and line.looks > 0 do
    local id, place, score = step(line, now)
    if not id then break end
    line.looks = line.looks - 1
    if not keyed.parked(score) or waking[id] then
      line.runs = true
    elseif make_due(line.key, place, id) then
      line.left, line.runs = line.left - 1, true
      woken[#woken + 1] = id
    end
  end
  if line.left == 0 or line.looks == 0 then return true end
  if not finished(line) then return false end
  local state = state_of(line.key)
  if not line.alive and state and not state.sole and not state.closed and count_of(state) == 0 then set_state(line.key, false) end
  return true
end

-- none_parked reports whether no timer of the topic waits for a key: then there is none to
-- wake. Who parks timers notes it.
local parked_any
local function none_parked()
  if parked_any == nil then parked_any = redis.call('ZCOUNT', key_timeline, PARKED, PARKED) > 0 end
  return not parked_any
end

-- wake makes the first parked timers of keys due. List has for each key how many it may
-- wake, at how many of its timers it may look, and how many it reads first. It returns
-- those it woke; write_due writes it. A key of which it could not look at enough timers is
-- postponed.
function keyed.wake(list, now)
  local woken, open = {}, {}
  for _, w in ipairs(list) do
    local state = state_of(w.key)
    local idle = state and count_of(state) > 0 and none_parked() -- and it has timers, so its state stays
    if state and not state.sole and not state.closed and w.most > 0 and not idle then
      local line = line_of(w.key, w.ask)
      line.left, line.looks = w.most, w.looks
      open[#open + 1] = line
    end
  end
  while #open > 0 and room > 0 do
    read(open)
    local rest = {}
    for _, line in ipairs(open) do
      if not wake_next(line, now, woken) then rest[#rest + 1] = line end
    end
    open = rest
  end
  for _, line in ipairs(open) do
    if not line.runs then postpone(line.key) end
  end
  return woken
end

-- reopen opens a closed key. How many of its timers may start is known to the exchange,
-- so this wakes one, and the next exchange looks at the key.
function keyed.reopen(key, state, now)
  close(key, state, nil)
  if count_of(state) == 0 then keyed.wake({{key = key, most = 1, looks = 1, ask = 1}}, now) end
  if state_of(key) then postpone(key) end
end

-- verify drops from a key those of its holders that do not go on by themselves, as after
-- a peer has removed or moved them, and returns how many. Those that were woken in this
-- exchange hold it although they are parked in Redis.
function keyed.verify(key, state, ids, now)
  local scores = collect('ZMSCORE', key_timeline, ids, 1, #ids)
  local records = collect('HMGET', key_leases, ids, 1, #ids)
  local dropped = 0
  for i, id in ipairs(ids) do
    if not waking[id] and not (scores[i] and goes_on(current(records[i], scores[i]), scores[i], now)) then
      release(key, state, id)
      dropped = dropped + 1
      local place, of = place_of(scores[i] and redis.call('HGET', key_of, id))
      if of == key then
        if keyed.parked(scores[i]) then link(key, place, id) else move(key, place, id, number(scores[i])) end
      end
    end
  end
  return dropped
end
