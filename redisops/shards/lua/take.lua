-- Takes timers out of a topic into its outbox, from the last one on: put after
-- keys_order.lua. Timers of a key are taken together. Timers that a handler has or that are
-- pinned stay, and so do those of their keys. Timers without a key that become due soon,
-- or became due a moment ago, stay as well: they are handled here.
--
-- KEYS: timeline payloads leases keys order busy rates moving taken pins
-- ARGV: move limit offset margin grace longest bytes
--   move: the name of a move to another Redis, which another process may have ended, and
--   '' otherwise; limit: how many timers to look at, and after how many no further key is
--   taken; offset: how many at the end to leave; margin: the µs within which a timer
--   becomes due soon; grace: the µs for which one that is due stays; longest: the most
--   timers of a key; bytes: after how many bytes of payloads no further key is taken.
-- Returns: how many timers were taken, '-' if the move has ended, how many of those that
--   were looked at stay, and the token and the content of the batch, '' if none was taken;
--   as texts.

local bad = mistyped('zset', 'hash', 'hash', 'hash', 'zset', 'hash', 'zset', 'hash', 'hash', 'hash')
if bad then return bad end
if ARGV.move ~= '' and redis.call('HGET', KEYS.taken, 'm') ~= ARGV.move then return {'-', '0', '', ''} end

local timeline, pins = KEYS.timeline, KEYS.pins
local now = clock()
local margin, grace = tonumber(ARGV.margin) / 1e6, tonumber(ARGV.grace) / 1e6
local longest, room = tonumber(ARGV.longest), tonumber(ARGV.bytes)
keyed.open(KEYS.keys, KEYS.order, KEYS.busy, timeline, KEYS.leases)

local parts, ids, marks, members, free_keys = {'t'}, {}, {}, {}, {}
local seen = {}

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

-- movable returns what is stored of a timer if it may be moved now, and otherwise nil. An
-- entry without a payload moves as it is: a claim decides on it.
local function movable(id, score)
  local r = redis.call('HGET', KEYS.leases, id)
  local payload = redis.call('HGET', KEYS.payloads, id)
  if running(current(r, score), score, now) or pinned('i' .. id) then return nil end
  return {
    id = id, score = score, payload = payload or '', record = r or '', key = '', place = '', held = false, rate = '',
    bare = not payload,
  }
end

-- held_code is what the batch says of a timer: 1 if it holds its key, else 0; B and b if it
-- has no payload.
local function held_code(t)
  if t.bare then return t.held and 'B' or 'b' end
  return t.held and '1' or '0'
end

local function pack(t)
  local lengths, fields = {}, {t.id, t.score, t.payload, t.record, t.key, t.place, held_code(t), t.rate}
  for i, field in ipairs(fields) do lengths[i] = #field end
  parts[#parts + 1] = table.concat(lengths, ' ') .. '\n' .. table.concat(fields)
  room = room - #t.payload
  ids[#ids + 1] = t.id
  marks[#marks + 1] = 'i' .. t.id
end

-- timers_of returns the timers of a key, which of them hold it, and the members of its
-- order; nil if there are too many.
local function timers_of(key, id)
  read_states({key})
  local state = state_of(key) or {held = {}}
  local prefix = prefix_of(key)
  local order = redis.call('ZRANGEBYLEX', KEYS.order, '[' .. prefix, '(' .. prefix .. '\255', 'LIMIT', '0', longest + 1)
  local list, held, listed = {}, {}, {}
  local function add(each)
    if not listed[each] then
      listed[each] = true
      list[#list + 1] = each
    end
  end
  for _, each in ipairs(holders(key, state, longest + 1)) do
    held[each] = true
    add(each)
    if state.many then order[#order + 1] = holder(key, each) end
  end
  if state.sole then add(state.sole) end
  for _, m in ipairs(order) do
    if string.sub(m, 1, 1) ~= 'h' then add(string.sub(m, #prefix + PLACE + 1)) end
  end
  add(id)
  if #list > longest then return nil end
  return list, held, order
end

-- take_key takes all timers of a key, or none, and returns how many.
local function take_key(key, id)
  if pinned('k' .. key) then return 0 end
  local list, held, order = timers_of(key, id)
  if not list then return 0 end
  local rate, found = redis.call('ZSCORE', KEYS.rates, key) or '', {}
  local scores = collect('ZMSCORE', timeline, list, 1, #list)
  local entry = collect('HMGET', KEYS.keys, list, 1, #list)
  for i, each in ipairs(list) do
    if scores[i] then
      local t = movable(each, scores[i])
      if not t then return 0 end
      local place, of = place_of(entry[i])
      if of == key then
        t.key, t.place, t.rate, t.held = key, place, rate, held[each]
        found[#found + 1] = t
      end
    end
  end
  for _, t in ipairs(found) do pack(t) end
  for _, m in ipairs(order) do members[#members + 1] = m end
  free_keys[#free_keys + 1] = key
  marks[#marks + 1] = 'k' .. key
  return #found
end

local looked = redis.call('ZREVRANGE', timeline, ARGV.offset, string.format('%.0f', ARGV.offset + ARGV.limit - 1), 'WITHSCORES')
local page = {}
for i = 1, #looked, 2 do page[#page + 1] = looked[i] end
local entry = collect('HMGET', KEYS.keys, page, 1, #page)
local stay, taken = 0, {}
for i, id in ipairs(page) do
  local before = #ids
  local _, key = place_of(entry[i])
  local full = room <= 0 or #ids >= tonumber(ARGV.limit)
  if full then
    if not taken[id] then stay = stay + 1 end
  elseif taken[id] then
    before = -1
  elseif key then
    if not seen[key] then
      seen[key] = true
      take_key(key, id)
    end
  else
    local at = number(looked[2 * i])
    local t = not (at > now - grace and at <= now + margin) and movable(id, looked[2 * i])
    if t then pack(t) end
  end
  for j = math.max(before, 0) + 1, #ids do taken[ids[j]] = true end
  if not full and before == #ids then stay = stay + 1 end
end
if #ids == 0 then return {'0', string.format('%.0f', stay), '', ''} end

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
variadic('ZREM', KEYS.rates, free_keys, 1, #free_keys)
return {string.format('%.0f', #ids), string.format('%.0f', stay), token, batch}
