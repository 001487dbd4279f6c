-- Stores timers that were exported: put after keys_written.lua. The timers of a key have
-- the places that they had.
--
-- Parts: keys keys_states keys_order keys_written fence
-- KEYS: timeline payloads leases hint keys order busy
-- ARGV: mode ...
--   mode: k leaves a timer that exists as it is, r replaces it, d writes nothing; then for
--   each timer its id, score, payload, lease record, key and place ('' for none), and 1 if
--   it holds its key, unless another does.
-- Returns: one string, a code for each timer: s stored, e it exists, which mode r replaces.

local bad = mistyped('zset', 'hash', 'hash', 'string', 'hash', 'zset', 'hash')
if bad then return bad end

local FIELDS = 7
local timeline, payloads, leases = KEYS.timeline, KEYS.payloads, KEYS.leases
local now = clock()
local now_text = text(now)
local known, lowest = head(timeline) or math.huge, math.huge
keyed.open(KEYS.keys, KEYS.order, KEYS.busy, timeline, leases)

local all, ids = {}, {}
for i = ARGV_NAMED + 1, #ARGV, FIELDS do
  all[#all + 1] = {
    id = ARGV[i], score = ARGV[i + 1], payload = ARGV[i + 2], record = ARGV[i + 3],
    key = ARGV[i + 4], place = ARGV[i + 5], held = ARGV[i + 6] == '1',
  }
  ids[#ids + 1] = ARGV[i]
end

local codes, list, before = {}, {}, {} -- list has the timers that are written, before the scores that they had
local scores = collect('ZMSCORE', timeline, ids, 1, #ids)
local written, held_before = {}, {} -- ids
for i, t in ipairs(all) do
  local exists = scores[i] and redis.call('HEXISTS', payloads, t.id) == 1
  codes[i] = exists and 'e' or 's'
  if ARGV.mode ~= 'd' and (not exists or ARGV.mode == 'r') then
    list[#list + 1], written[#written + 1], before[#before + 1] = t, t.id, scores[i]
    if scores[i] then
      local r = current(redis.call('HGET', leases, t.id), scores[i])
      if running(r, scores[i], now) then held_before[#held_before + 1] = t.id end
      -- The score of a lease is its token: the new one must be another.
      if r and r.state == 'l' and same(scores[i], t.score) then
        t.score = text(number(t.score) + 1e-6)
        t.record = ''
      end
    end
  end
end
if #list == 0 then return table.concat(codes) end

local bodies, scored, recorded, dropped, of_keys, entry = {}, {}, {'', SENTINEL}, {}, {}, {}
for i, t in ipairs(list) do
  bodies[2 * i - 1], bodies[2 * i] = t.id, t.payload
  scored[2 * i - 1], scored[2 * i] = t.score, t.id
  if t.record ~= '' then
    recorded[#recorded + 1], recorded[#recorded + 2] = t.id, t.record
  else
    dropped[#dropped + 1] = t.id
  end
  if t.key ~= '' then of_keys[#of_keys + 1] = t.key end
  lowest = math.min(lowest, number(t.score))
end
-- The first write is one that a full Redis refuses.
variadic('HSET', payloads, bodies, 1, #bodies)
-- Also what is left of timers that a peer has removed.
if keyed.ended(written, before, now_text) then lowest = math.min(lowest, now) end
variadic('ZADD', timeline, scored, 1, #scored)
variadic('HDEL', leases, dropped, 1, #dropped)
if #recorded > 2 then variadic('HSET', leases, recorded, 1, #recorded) end

if #of_keys > 0 then
  read_states(of_keys)
  local seen, highest = {}, 0
  for _, t in ipairs(list) do
    if t.key ~= '' then
      local sole = not states[t.key] and not seen[t.key]
      seen[t.key] = true
      entry[#entry + 1], entry[#entry + 2] = t.id, t.place .. (sole and 's' or 'm') .. t.key
      highest = math.max(highest, tonumber(string.sub(t.place, 19)))
    end
  end
  variadic('HSET', KEYS.keys, entry, 1, #entry)
  for _, t in ipairs(list) do
    local state = t.key ~= '' and state_of(t.key)
    if t.key ~= '' and not state then
      set_state(t.key, {sole = t.id, held = {}})
    elseif state then
      keyed.several(t.key, state)
      if t.held and count_of(state) == 0 then
        hold(t.key, state, t.id)
      else
        link(t.key, t.place, t.id)
      end
    end
  end
  keyed.write(now_text)
  -- A later schedule for the same instant comes after those that were exported.
  if highest > (tonumber(redis.call('HGET', KEYS.busy, '') or '0') or 0) then
    redis.call('HSET', KEYS.busy, '', string.format('%.0f', highest))
  end
end
if lowest < known then announce(KEYS.hint, lowest, now) end
recheck_all(KEYS.hint, held_before, now)
return table.concat(codes)
