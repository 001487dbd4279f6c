-- Makes dead letters of timers that have no payload, a page a call: put after
-- keys_written.lua. A timer that a handler has stays.
--
-- Parts: keys keys_states keys_order keys_written fence
-- KEYS: timeline payloads leases dead hint keys order busy
-- ARGV: cursor count apply
--   apply: 1, or 0 to count them only.
-- Returns: the next cursor ('0' at the end), how many timers were examined, how many have
--   no payload, and how many of these are or would be dead letters; as texts.

local bad = mistyped('zset', 'hash', 'hash', 'stream', 'string', 'hash', 'zset', 'hash')
if bad then return bad end

local timeline, leases = KEYS.timeline, KEYS.leases
local now = clock()
local now_text = text(now)
local page = redis.call('ZSCAN', timeline, ARGV.cursor, 'COUNT', ARGV.count)
local examined, missing, seen = 0, 0, {}
local ids, scores = {}, {}
for i = 1, #page[2], 2 do
  local id = page[2][i]
  if not seen[id] then
    seen[id], examined = true, examined + 1
    if redis.call('HEXISTS', KEYS.payloads, id) == 0 then
      missing = missing + 1
      local score = redis.call('ZSCORE', timeline, id)
      if not running(current(redis.call('HGET', leases, id), score), score, now) then
        ids[#ids + 1], scores[#scores + 1] = id, score
      end
    end
  end
end

if ARGV.apply == '1' and #ids > 0 then
  local records = collect('HMGET', leases, ids, 1, #ids)
  local entry = collect('HMGET', KEYS.keys, ids, 1, #ids)
  for i, id in ipairs(ids) do
    local place, key = place_of(entry[i])
    local instant = keyed.parked(scores[i]) and place and instant_of(place) or scores[i]
    local r = current(records[i], scores[i]) or {claims = 0, failures = 0, activation = instant}
    local letter = {KEYS.dead, '*', 'id', id, 'claims', string.format('%.0f', r.claims),
      'failures', string.format('%.0f', r.failures), 'reason', 'payload missing', 'activation', r.activation, 'at', now_text}
    if key then letter[#letter + 1], letter[#letter + 2] = 'key', key end
    redis.call('XADD', unpack(letter))
  end
  variadic('ZREM', timeline, ids, 1, #ids)
  variadic('HDEL', leases, ids, 1, #ids)
  keyed.open(KEYS.keys, KEYS.order, KEYS.busy, timeline, leases)
  if keyed.ended(ids, scores, now_text) then announce(KEYS.hint, now, now) end
end

local function whole(n) return string.format('%.0f', n) end

return {page[1], whole(examined), whole(missing), whole(#ids)}
