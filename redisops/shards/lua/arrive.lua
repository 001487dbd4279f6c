-- Stores timers that were taken out of another topic, once: put after keys_written.lua.
-- An id that is here already stays as it is. The timers of a key keep their order.
--
-- Parts: keys keys_states keys_order keys_written fence
-- KEYS: timeline payloads leases hint keys order busy rates arrived
-- ARGV: token keep part more ...
--   token: of the batch; keep: the ms for which it is remembered; part: the key if the batch
--   has some of its timers, which move in several steps, '' otherwise; more: 1 if others of
--   the key follow, so that it is closed until then, else 0; then for each timer its id, score,
--   payload, lease record, key and place ('' for none), 1 if it holds its key, or waits for its
--   retry as the sole one of its key, else 0, or B and b if it has no payload, and when all
--   tokens of its key are back ('' for none).
-- Returns: how many timers were stored, as a text.

local bad = mistyped('zset', 'hash', 'hash', 'string', 'hash', 'zset', 'hash', 'zset', 'hash')
if bad then return bad end
if redis.call('HEXISTS', KEYS.arrived, ARGV.token) == 1 then return '0' end

local FIELDS = 8
local timeline = KEYS.timeline
local now = clock()
local known, lowest = head(timeline) or math.huge, math.huge
-- CLOSED_FOR is for how many seconds a key stays closed that no further batch opens.
local CLOSED_FOR = 60
keyed.open(KEYS.keys, KEYS.order, KEYS.busy, timeline, KEYS.leases)

local all, ids, of_keys = {}, {}, {}
for i = ARGV_NAMED + 1, #ARGV, FIELDS do
  local t = {
    id = ARGV[i], score = ARGV[i + 1], payload = ARGV[i + 2], record = ARGV[i + 3],
    key = ARGV[i + 4], place = ARGV[i + 5], held = ARGV[i + 6] == '1' or ARGV[i + 6] == 'B', rate = ARGV[i + 7],
    bare = string.lower(ARGV[i + 6]) == 'b',
  }
  all[#all + 1], ids[#ids + 1] = t, t.id
  if t.key ~= '' then of_keys[#of_keys + 1] = t.key end
end
if ARGV.part ~= '' then of_keys[#of_keys + 1] = ARGV.part end
read_states(of_keys)

-- unpark makes a timer due: one that joins others of its key, which decide anew which is
-- next, or the first of a key that no other holds.
local function unpark(t)
  if not keyed.parked(t.score) then return end
  local score = instant_of(t.place)
  local r = current(t.record, t.score)
  if r then t.record = record('w', r, score) end
  t.score = score
end

local existing = collect('ZMSCORE', timeline, ids, 1, #ids)
local new, before, bodies = {}, {}, {}
for i, t in ipairs(all) do
  if not existing[i] then
    new[#new + 1], before[#before + 1] = t.id, false
    if not t.bare then bodies[#bodies + 1], bodies[#bodies + 2] = t.id, t.payload end
  end
end
-- The first write is one that a full Redis refuses.
variadic('HSET', KEYS.payloads, bodies, 1, #bodies)
-- What is left of timers that a peer has removed here.
if keyed.ended(new, before, text(now)) then lowest = math.min(lowest, now) end
local scored, recorded = {}, {'', SENTINEL}
local joined, units, order, some, stored = {}, {}, {}, {}, 0
for i, t in ipairs(all) do
  if not existing[i] then
    stored = stored + 1
    if ARGV.part ~= '' then
      some[#some + 1] = t
    elseif t.key ~= '' and state_of(t.key) then
      unpark(t)
      joined[#joined + 1] = {id = t.id, key = t.key, instant = number(instant_of(t.place)), entry = false, score = false}
    elseif t.key ~= '' then
      if not units[t.key] then
        units[t.key] = {}
        order[#order + 1] = t.key
      end
      table.insert(units[t.key], t)
    end
  end
end
-- The holder may not have come, because it was removed or its id is here.
for _, key in ipairs(order) do
  local unit, goes_on = units[key], false
  table.sort(unit, function(a, b) return a.place < b.place end)
  for _, t in ipairs(unit) do goes_on = goes_on or t.held and not keyed.parked(t.score) end
  if not goes_on or #unit == 1 then unpark(unit[1]) end
end
for i, t in ipairs(all) do
  if not existing[i] then
    scored[#scored + 1], scored[#scored + 2] = t.score, t.id
    if t.record ~= '' then recorded[#recorded + 1], recorded[#recorded + 2] = t.id, t.record end
    lowest = math.min(lowest, number(t.score))
  end
end
variadic('ZADD', timeline, scored, 1, #scored)
if #recorded > 2 then variadic('HSET', KEYS.leases, recorded, 1, #recorded) end

-- apart reports whether a timer waits for its retry without its key: see keys.lua.
local function apart(t)
  local r = current(t.record, t.score)
  return not t.held and r and r.tried and number(t.score) > now
end

-- place_unit stores the entries of the timers of a key that has none here.
local function place_unit(key, unit)
  local number_of = redis.call('HINCRBY', KEYS.busy, '', #unit) - #unit
  local written, held, sole = {}, {}, #unit == 1 and not apart(unit[1])
  for i, t in ipairs(unit) do
    local place = string.sub(t.place, 1, 18) .. string.format('%015.0f', number_of + i)
    written[2 * i - 1], written[2 * i] = t.id, place .. (sole and 's' or 'm') .. key
    if apart(t) then
      set_member(runner(key, t.id), true)
    elseif not sole and t.held and not keyed.parked(t.score) then
      held[#held + 1] = t.id
    elseif not sole then
      link(key, place, t.id)
    end
  end
  variadic('HSET', KEYS.keys, written, 1, #written)
  local state = {sole = sole and unit[1].id or nil, held = held}
  set_state(key, state)
  if #held > MANY then spread(key, state) end
end

-- place_part adds some timers of a key that move in several steps: they come in their order.
local function place_part(key, list)
  local state = state_of(key)
  if not state then
    state = {held = {}}
    set_state(key, state)
  end
  keyed.several(key, state)
  local number_of = redis.call('HINCRBY', KEYS.busy, '', #list) - #list
  for i, t in ipairs(list) do
    local place = string.sub(t.place, 1, 18) .. string.format('%015.0f', number_of + i)
    write_entry(t.id, place, key)
    if t.held and not keyed.parked(t.score) then hold(key, state, t.id) else link(key, place, t.id) end
  end
  if ARGV.more == '1' then
    close(key, state, text(now + CLOSED_FOR))
  else
    keyed.reopen(key, state, now)
    lowest = math.min(lowest, now)
  end
end

for _, key in ipairs(order) do place_unit(key, units[key]) end
if ARGV.part ~= '' then place_part(ARGV.part, some) end
keyed.write(text(now))
if #joined > 0 and keyed.schedule(joined, text(now)) then lowest = math.min(lowest, now) end

for _, t in ipairs(all) do
  local at = t.rate ~= '' and redis.call('ZSCORE', KEYS.rates, t.key)
  if t.rate ~= '' and not (at and number(at) >= number(t.rate)) then
    local life = math.max(redis.call('PTTL', KEYS.rates), (number(t.rate) - now + 60) * 1e3, 1)
    redis.call('ZADD', KEYS.rates, t.rate, t.key)
    redis.call('PEXPIRE', KEYS.rates, string.format('%.0f', life))
  end
end
redis.call('HSET', KEYS.arrived, ARGV.token, '1')
redis.call('PEXPIRE', KEYS.arrived, ARGV.keep)
if lowest < known then announce(KEYS.hint, lowest, now) end
return string.format('%.0f', stored)
