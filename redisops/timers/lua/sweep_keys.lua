-- Mends what is stored of the keys of a topic, a page a call, so that no timer waits for a
-- key that is free: it walks through the states of keys, the holders of keys that have
-- many, and the parked timers, and wakes those that may run.
--
-- Parts: keys keys_states keys_order
-- KEYS: timeline leases hint keys order busy exchange payloads
-- ARGV: cursor count limit longest opens
--   cursor: '0' at the beginning; limit: the most timers of a key at once, 0 for no
--   bound; longest: the µs for which a timer may wait for a token; opens: 1 to open
--   keys that were closed until now, 0 if another process is about to.
-- Returns: the next cursor ('0' at the end), and how many timers it woke; as texts.

local bad = mistyped('zset', 'hash', 'string', 'hash', 'zset', 'hash', 'string', 'hash')
if bad then return bad end

-- HELD and WAITING are how many holders and parked timers a call looks at, and WOKEN about
-- how many timers it wakes. OVERLAP is how many parked timers the next call looks at
-- again, because others may have left since. Of more than SHARED parked timers one node
-- takes care, in SHARE ms.
local HELD, WAITING, WOKEN, OVERLAP = 200, 300, 500, 100
local SHARED, SHARE = 20000, '30000'
room = 1500 -- it looks at nothing else

local timeline, states_key = KEYS.timeline, KEYS.busy
local now = clock()
local now_text = text(now)
keyed.open(KEYS.keys, KEYS.order, states_key, timeline, KEYS.leases)
local limit = tonumber(ARGV.limit)
if limit == 0 then limit = math.huge end

local latest = now + tonumber(ARGV.longest) / 1e6
local woken = 0

-- due_now makes a timer due that is in no order. Stored is its record, or false.
local function due_now(id, stored, score)
  local r = current(stored, score) or {claims = 0, failures = 0, activation = now_text, first = '', err = ''}
  if keyed.parked(score) then
    if place_of(entries[id]) then r.activation = instant_of(place_in(entries[id])) end
    r.before = r.activation
  end
  redis.call('ZADD', timeline, now_text, id)
  redis.call('HSET', KEYS.leases, id, record('w', r, now_text))
  woken = woken + 1
end

-- wake_late makes timers due that wait for a token for too long: a rate limit was raised
-- or removed, or the clock was set back.
local function wake_late(ids)
  local scores = collect('ZMSCORE', timeline, ids, 1, #ids)
  local late, at = {}, {}
  for i, id in ipairs(ids) do
    if scores[i] and number(scores[i]) > latest then late[#late + 1], at[#at + 1] = id, scores[i] end
  end
  local found = collect('HMGET', KEYS.leases, late, 1, #late)
  for i, id in ipairs(late) do
    if waits_for_token(current(found[i], at[i])) then due_now(id, found[i], at[i]) end
  end
end

-- sweep_line wakes the first timers of a key, up to as many as there are places, and returns
-- how many places are left and after which member to continue, or nil at the end.
local function sweep_line(key, state, left, last)
  local line = line_of(key, 1)
  line.last = last
  while left > 0 do
    local id, place, score = advance(line, now)
    if not id and finished(line) then break end
    if not id or woken_here >= WOKEN then return left, line.last or '' end
    if keyed.parked(score) then make_due(key, place, id) end
    left = left - 1
  end
  if finished(line) and not line.alive and not last and not state.closed and count_of(state) == 0 then set_state(key, false) end
end

-- sweep_sole mends the state of a key with a sole timer. The entry of a timer that was lost
-- stays with its payload, as heal.lua says.
local function sweep_sole(key, id, waiting)
  local score = redis.call('ZSCORE', timeline, id)
  if not score then
    if redis.call('HEXISTS', KEYS.payloads, id) == 0 then redis.call('HDEL', KEYS.keys, id) end
    set_state(key, false)
  elseif keyed.parked(score) then
    entries[id] = redis.call('HGET', KEYS.keys, id)
    due_now(id, redis.call('HGET', KEYS.leases, id), score)
  else
    waiting[#waiting + 1] = id
  end
end

-- sweep_states walks through the keys of a page of states from a key on. At is where: the
-- cursor of the page, how many places are left of the key from, and after which member.
local function sweep_states(at, left, from, last)
  local page = redis.call('HSCAN', states_key, at, 'COUNT', ARGV.count)
  local names, waiting = {}, {}
  for i = 1, #page[2], 2 do
    local name = page[2][i]
    if name ~= '' and name >= from then names[#names + 1] = name end
  end
  table.sort(names)
  local next_at = page[1] == '0' and 'h' or 'k' .. page[1] .. ' - 0 '
  local read = {}
  for i = 1, math.min(#names, WOKEN) do read[i] = names[i] end
  read_states(read)
  for i, key in ipairs(names) do
    if i > #read or room <= 0 or woken_here >= WOKEN then
      next_at = 'k' .. at .. ' - ' .. #key .. ' ' .. key
      break
    end
    local state, resumed = state_of(key), key == from and left ~= '-'
    if state and state.sole then
      room = room - 1
      sweep_sole(key, state.sole, waiting)
    elseif state then
      if state.closed and (number(state.closed) or 0) <= now and ARGV.opens == '1' then close(key, state, nil) end
      if not resumed then
        local ids = holders(key, state, MANY)
        room = room - #ids
        keyed.verify(key, state, ids, now)
        for _, id in ipairs(ids) do waiting[#waiting + 1] = id end
      end
      local places, after = sweep_line(key, state, resumed and tonumber(left) or places_of(state, limit), resumed and last or nil)
      if places then
        next_at = 'k' .. at .. ' ' .. (places == math.huge and 'inf' or string.format('%.0f', places)) ..
          ' ' .. #key .. ' ' .. key .. after
        break
      end
    end
  end
  keyed.write(now_text)
  wake_late(waiting)
  return next_at
end

-- wake_keys wakes the next timers of keys, if there are places.
local function wake_keys(keys)
  local list = {}
  for key in pairs(keys) do
    local state = state_of(key)
    local most = state and math.min(places_of(state, limit), WOKEN) or 0
    if most > 0 then list[#list + 1] = {key = key, most = most, looks = most, ask = 1} end
  end
  keyed.wake(list, now)
end

-- sweep_runners removes members of timers that neither run nor wait for a retry.
local function sweep_runners(list)
  local ids = {}
  for i = 2, #list, 2 do ids[i / 2] = list[i] end
  local scores = collect('ZMSCORE', timeline, ids, 1, #ids)
  local records = collect('HMGET', KEYS.leases, ids, 1, #ids)
  for i = 1, #ids do
    local r = scores[i] and current(records[i], scores[i])
    if not (r and (r.state == 'l' or r.tried)) then set_member(list[2 * i - 1], false) end
  end
end

-- sweep_holders walks through the holders of keys that have many, and those that run without
-- holding their keys, after a member.
local function sweep_holders(last)
  local found = redis.call('ZRANGEBYLEX', KEYS.order, last == '' and '[h' or '(' .. last, '(s', 'LIMIT', '0', HELD)
  local keys, of, waiting, freed, runners = {}, {}, {}, {}, {}
  for _, m in ipairs(found) do
    local length = tonumber(string.sub(m, 2, 4)) or 0
    local key, id = string.sub(m, 5, 4 + length), string.sub(m, 5 + length)
    if string.sub(m, 1, 1) == 'r' then
      runners[#runners + 1], runners[#runners + 2] = m, id
    else
      if not of[key] then keys[#keys + 1], of[key] = key, {} end
      table.insert(of[key], id)
      waiting[#waiting + 1] = id
    end
  end
  sweep_runners(runners)
  read_states(keys)
  for _, key in ipairs(keys) do
    local state = state_of(key)
    if state and state.many then
      if keyed.verify(key, state, of[key], now) > 0 then freed[key] = true end
    else
      for _, id in ipairs(of[key]) do set_member(holder(key, id), false) end
    end
  end
  wake_keys(freed)
  keyed.write(now_text)
  wake_late(waiting)
  return #found < HELD and 'p0' or 'h' .. found[#found]
end

-- in_line makes a parked timer be in the order of its key, at the place of an instant that is
-- over, and nowhere else, and reports whether it was not. Ordered says that it is in the order,
-- stored is its record, or false.
local function in_line(id, entry, ordered, stored)
  local place, key = place_of(entry)
  local state = state_of(key)
  local late = string.sub(place, 1, 18) > micros(now)
  local right = state and not state.sole and ordered and not is_sole(entry) and not late
  if not state then
    state = {held = {}}
    set_state(key, state)
  end
  keyed.several(key, state)
  if release(key, state, id) then right = false end
  if is_sole(entry) then write_entry(id, place, key) end
  if late then
    local r = current(stored, PARKED)
    local instant = r and number(r.activation) or now
    move(key, place, id, math.min(instant, now))
  elseif not ordered then
    link(key, place, id)
  end
  return not right
end

-- sweep_parked walks through the parked timers, from the offset-th on.
local function sweep_parked(offset)
  local first = redis.call('ZCOUNT', timeline, '-inf', '(' .. PARKED)
  if offset == 0 and redis.call('ZCARD', timeline) - first > SHARED and
    not redis.call('SET', KEYS.exchange, '1', 'NX', 'PX', SHARE) then
    return '0'
  end
  local from = first + offset
  local found = redis.call('ZRANGE', timeline, string.format('%.0f', from), string.format('%.0f', from + WAITING - 1), 'WITHSCORES')
  local ids, keys, members = {}, {}, {}
  for i = 1, #found, 2 do
    if keyed.parked(found[i + 1]) then ids[#ids + 1] = found[i] end
  end
  local entry, stored = collect('HMGET', KEYS.keys, ids, 1, #ids), collect('HMGET', KEYS.leases, ids, 1, #ids)
  note_entries(ids, entry)
  for i, id in ipairs(ids) do
    local place, key = place_of(entry[i])
    members[i] = place and member(key, place, id) or ''
    if place then keys[#keys + 1] = key end
  end
  read_states(keys)
  local ordered, freed = collect('ZMSCORE', KEYS.order, members, 1, #members), {}
  for i, id in ipairs(ids) do
    local place, key = place_of(entry[i])
    local state = place and state_of(key)
    if not place or state and state.sole == id then
      due_now(id, stored[i], PARKED)
    elseif in_line(id, entry[i], ordered[i], stored[i]) then
      freed[key] = true
    end
  end
  wake_keys(freed)
  keyed.write(now_text)
  if #found < 2 * WAITING then return '0' end
  return 'p' .. string.format('%.0f', math.max(offset, offset + #ids - OVERLAP - woken - woken_here))
end

local cursor, next_cursor = ARGV.cursor, '0'
local phase = string.sub(cursor, 1, 1)
if phase == 'h' then
  next_cursor = sweep_holders(string.sub(cursor, 2))
elseif phase == 'p' then
  next_cursor = sweep_parked(tonumber(string.sub(cursor, 2)))
else
  local at, left, length, rest = string.match(cursor, '^k(%d+) (%S+) (%d+) (.*)$')
  length = tonumber(length or '0')
  rest = rest or ''
  if left == 'inf' then left = math.huge end
  next_cursor = sweep_states(at or '0', left or '-', string.sub(rest, 1, length), string.sub(rest, length + 1))
end
woken = woken + woken_here
if next_cursor == '0' then forget_states(KEYS.payloads) end
if woken > 0 or keyed.unfinished() then announce(KEYS.hint, now, now) end
return {next_cursor, string.format('%.0f', woken)}
