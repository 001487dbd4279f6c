-- Takes timers out of a topic into its outbox, from the last one on: put after
-- keys_order.lua. Timers of a key are taken together, or those of one key at a time in
-- several steps: the key is closed until the last of them. Timers that a handler has or that
-- are pinned stay, and so do those of their keys. Timers without a key that become due soon,
-- or became due a moment ago, stay as well: they are handled here.
--
-- Parts: keys keys_states keys_order fence
-- KEYS: timeline payloads leases keys order busy rates moving taken pins
-- ARGV: move look offset margin grace most bytes
--   move: the name of a move to another Redis, which another process may have ended, and
--   '' otherwise; look: how many timers to look at, 0 to continue with a closed key only;
--   offset: how many at the end to leave; margin: the µs within which a timer becomes due
--   soon; grace: the µs for which one that is due stays; most: how many timers to take;
--   bytes: of how many bytes of payloads, if it is not one timer.
-- Returns: how many timers were taken, '-' if the move has ended, the next offset, '' at the
--   end of the timeline, and the token and the content of the batch, '' if there is none; as
--   texts.

local bad = mistyped('zset', 'hash', 'hash', 'hash', 'zset', 'hash', 'zset', 'hash', 'hash', 'hash')
if bad then return bad end
if ARGV.move ~= '' and redis.call('HGET', KEYS.taken, 'm') ~= ARGV.move then return {'-', '', '', ''} end

-- CLOSED_FOR is for how many seconds a key stays closed that no further step opens.
local CLOSED_FOR = 60

local timeline, pins = KEYS.timeline, KEYS.pins
local now = clock()
local margin, grace = tonumber(ARGV.margin) / 1e6, tonumber(ARGV.grace) / 1e6
local most, room_left = tonumber(ARGV.most), tonumber(ARGV.bytes)
local looks = 3 * most -- how many timers of keys to read
keyed.open(KEYS.keys, KEYS.order, KEYS.busy, timeline, KEYS.leases)

local parts, ids, marks, members, free_keys = {'t'}, {}, {}, {}, {}

-- The field 'p' of the index has the key that is moved in several steps, after the time of
-- the last of them.
local leaving = string.match(redis.call('HGET', KEYS.taken, 'p') or '', '^%d+ (.*)$')

-- pinned reports whether a call is about to write a timer, or a timer of a key.
local function pinned(name)
  local found = redis.call('HGET', pins, name)
  if not found then return false end
  for at in string.gmatch(found, '(%S+) %S+ ') do
    if number(at) > now then return true end
  end
  redis.call('HDEL', pins, name)
  return false
end

-- movable returns what is stored of a timer if it may be moved now, and otherwise nil. Its
-- payload is read when it is packed.
local function movable(id, score)
  local r = redis.call('HGET', KEYS.leases, id)
  if running(current(r, score), score, now) or pinned('i' .. id) then return nil end
  return {
    id = id, score = score, record = r or '', key = '', place = '', held = false, rate = '',
    size = redis.call('HSTRLEN', KEYS.payloads, id),
  }
end

-- held_code is what the batch says of a timer: 1 if it holds its key, else 0; B and b if it has
-- no payload.
local function held_code(t, payload)
  if not payload then return t.held and 'B' or 'b' end
  return t.held and '1' or '0'
end

local function put(...)
  local lengths, fields = {}, {...}
  for i, field in ipairs(fields) do lengths[i] = #field end
  parts[#parts + 1] = table.concat(lengths, ' ') .. '\n' .. table.concat(fields)
end

-- pack puts a timer into the batch. An entry without a payload moves as it is: a claim
-- decides on it.
local function pack(t)
  local payload = redis.call('HGET', KEYS.payloads, t.id)
  put(t.id, t.score, payload or '', t.record, t.key, t.place, held_code(t, payload), t.rate)
  room_left = room_left - t.size
  ids[#ids + 1] = t.id
  marks[#marks + 1] = 'i' .. t.id
end

-- fits reports whether timers of some bytes fit into the batch: one always does.
local function fits(count, bytes)
  return #ids == 0 and count == 1 or #ids + count <= most and bytes <= room_left
end

-- list_of returns the timers of a key that come first, those that hold it before the others
-- and those that run without holding it at the end, and whether there are more. Id is one of
-- the key that may be in none of them, or nil.
local function list_of(key, state, id)
  local list, listed, prefix = {}, {}, prefix_of(key)
  local function add(t)
    if not listed[t.id] then
      listed[t.id] = true
      list[#list + 1] = t
    end
  end
  local held = state and holders(key, state, most + 1) or {}
  local order = redis.call('ZRANGEBYLEX', KEYS.order, '[' .. prefix, '(' .. prefix .. '\255', 'LIMIT', '0', most + 1)
  for _, each in ipairs(held) do add({id = each, held = true, member = state.many and holder(key, each)}) end
  if state and state.sole then add({id = state.sole, sole = true}) end
  for _, m in ipairs(order) do add({id = string.sub(m, #prefix + PLACE + 1), member = m}) end
  local from = runner(key, '')
  local run = redis.call('ZRANGEBYLEX', KEYS.order, '[' .. from, '(' .. from .. '\255', 'LIMIT', '0', most + 1)
  for _, m in ipairs(run) do add({id = string.sub(m, #from + 1), member = m}) end
  if id then add({id = id}) end
  looks = looks - #list
  return list, #held > most or #order > most or #run > most
end

-- load reads the timers of a list, and returns those that are stored and may move, and
-- whether some may not.
local function load(key, list)
  local names, found, stay = {}, {}, false
  for i, t in ipairs(list) do names[i] = t.id end
  local rate = redis.call('ZSCORE', KEYS.rates, key) or ''
  local scores = collect('ZMSCORE', timeline, names, 1, #names)
  local entry = collect('HMGET', KEYS.keys, names, 1, #names)
  for i, each in ipairs(list) do
    local place, of = place_of(entry[i])
    local t = scores[i] and movable(each.id, scores[i])
    if scores[i] and not t then
      stay, each.stays = true, true
    elseif t and of == key then
      t.key, t.place, t.rate, t.held, t.member = key, place, rate, each.held or false, each.member
      local r = each.sole and current(t.record, t.score)
      if r and r.tried then t.held = true end -- it waits for its retry with its key
      found[#found + 1] = t
    end
  end
  return found, stay
end

-- leave takes those of a list of timers out of the state and the order of their key that are
-- taken or stored no more. Taken says of those that are stored whether they are.
local gone = false
local function leave(key, state, list, taken)
  for _, each in ipairs(list) do
    if not each.stays and taken[each.id] ~= false then
      gone = gone or taken[each.id] == nil
      if each.held then
        release(key, state, each.id)
      elseif each.member then
        set_member(each.member, false)
      end
    end
  end
end

-- take_part takes the first timers of a key that moves in several steps. The last step comes
-- when no others are left, even if it has none. While a part is in the outbox, none is taken.
-- A part that has only members of the order without timers removes these.
local function take_part(key, id)
  if redis.call('HEXISTS', KEYS.taken, 'k' .. key) == 1 then return end
  read_states({key})
  local state = state_of(key)
  if state then keyed.lapse_all(key, state, most + 100) end
  local list, more = list_of(key, state, id)
  if state and state.sole and #list > 1 then -- others wait for their retries without the key
    keyed.several(key, state)
    write_order()
    list, more = list_of(key, state, id)
  end
  local found, stay = load(key, list)
  local bytes, count = 0, 0
  while found[count + 1] and fits(count + 1, bytes + found[count + 1].size) do
    count = count + 1
    bytes = bytes + found[count].size
  end
  more = more or stay or count < #found
  -- A call is about to write a timer of the key here, so it must not have left.
  if not more and pinned('k' .. key) then count, more = count - 1, true end
  if more and state and state.sole then return end -- its only timer stays
  if more and not state then
    state = {held = {}}
    set_state(key, state)
  end
  local taken = {}
  for i, t in ipairs(found) do taken[t.id] = i <= count end
  if more then
    close(key, state, text(now + CLOSED_FOR))
    leave(key, state, list, taken)
  else
    for _, each in ipairs(list) do members[#members + 1] = each.member or nil end
    free_keys[1] = key
  end
  if not more or count > 0 then
    parts[1] = 'p'
    put(key, more and '1' or '0')
    for i = 1, count do pack(found[i]) end
    marks[#marks + 1] = 'k' .. key
    leaving = more and key or nil
    if more then
      redis.call('HSET', KEYS.taken, 'p', string.format('%.0f', now * 1e6) .. ' ' .. key)
    else
      redis.call('HDEL', KEYS.taken, 'p')
    end
  end
  write_states()
  write_order()
end

-- take_key takes all timers of a key, or the first of them if they are many, and returns
-- whether the batch is full.
local function take_key(key, id)
  if key == leaving or pinned('k' .. key) then return false end
  local state = state_of(key)
  -- Of a key that arrives here, others follow.
  if state and state.closed and (number(state.closed) or 0) > now then return false end
  if state and not state.sole then -- most of the keys that stay do so because of a holder
    looks = looks - 1
    for _, each in ipairs(holders(key, state, MANY)) do
      local score = redis.call('ZSCORE', timeline, each)
      if score and running(current(redis.call('HGET', KEYS.leases, each), score), score, now) then return false end
    end
    keyed.lapse_all(key, state, most + 100)
  end
  local list, more = list_of(key, state, id)
  local found, stay = load(key, list)
  if stay then return false end
  local bytes = 0
  for _, t in ipairs(found) do bytes = bytes + t.size end
  if more or not fits(#found, bytes) then
    if #ids > 0 then return true end
    if not leaving then take_part(key, id) end
    return #marks > 0
  end
  for _, t in ipairs(found) do pack(t) end
  for _, each in ipairs(list) do members[#members + 1] = each.member or nil end
  free_keys[#free_keys + 1] = key
  marks[#marks + 1] = 'k' .. key
  return false
end

-- take_page takes timers of a page of the timeline, and returns the next offset.
local function take_page()
  local last = string.format('%.0f', ARGV.offset + ARGV.look - 1)
  local looked = redis.call('ZREVRANGE', timeline, ARGV.offset, last, 'WITHSCORES')
  local page, keys, seen, taken, stay = {}, {}, {}, {}, 0
  for i = 1, #looked, 2 do page[#page + 1] = looked[i] end
  local entry = collect('HMGET', KEYS.keys, page, 1, #page)
  for i = 1, #page do
    local _, key = place_of(entry[i])
    keys[#keys + 1], entry[i] = key, key or false
  end
  read_states(keys)
  for i, id in ipairs(page) do
    local before, key, full = #ids, entry[i], false
    if #ids >= most or looks <= 0 then
      full = true
    elseif key and not seen[key] and not taken[id] then
      seen[key] = true
      full = take_key(key, id)
    elseif not key then
      local at = number(looked[2 * i])
      local t = not (at > now - grace and at <= now + margin) and movable(id, looked[2 * i])
      full = t and not fits(1, t.size)
      if t and not full then pack(t) end
    end
    for j = before + 1, #ids do taken[ids[j]] = true end
    if full then return string.format('%.0f', ARGV.offset + stay) end
    if not taken[id] then stay = stay + 1 end
  end
  if #page < tonumber(ARGV.look) then return '' end
  return string.format('%.0f', ARGV.offset + stay)
end

if leaving then take_part(leaving) end
local offset = ARGV.offset
if #marks == 0 and ARGV.look ~= '0' and not gone then offset = take_page() end
if #marks == 0 then return {'0', offset, '', ''} end

local token = string.format('%.0f', now * 1e6) .. '-' .. redis.call('HINCRBY', KEYS.taken, 'n', '1')
local batch = table.concat(parts)
redis.call('HSET', KEYS.moving, token, batch)
if ARGV.move == '' then redis.call('PERSIST', KEYS.taken) end -- drop.lua lets it expire
local index = {}
for i, mark in ipairs(marks) do index[2 * i - 1], index[2 * i] = mark, token end
variadic('HSET', KEYS.taken, index, 1, #index)
variadic('ZREM', timeline, ids, 1, #ids)
variadic('HDEL', KEYS.payloads, ids, 1, #ids)
variadic('HDEL', KEYS.leases, ids, 1, #ids)
variadic('HDEL', KEYS.keys, ids, 1, #ids)
variadic('ZREM', KEYS.order, members, 1, #members)
variadic('HDEL', KEYS.busy, free_keys, 1, #free_keys)
-- Tokens of keys that have left are taken in their shards; those that were taken on this Redis
-- stay so, because it is used until a move has ended.
if ARGV.move == '' then variadic('ZREM', KEYS.rates, free_keys, 1, #free_keys) end
return {string.format('%.0f', #ids), offset, token, batch}
