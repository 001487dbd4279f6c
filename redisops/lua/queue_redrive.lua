-- Publishes a dead letter of a queue again, and deletes it.
--
-- KEYS: pending dlq letters hint published ...
--   its deduplication key, if it has one.
-- ARGV: payload entry tail envelope window owners
--   tail is the end of the new id and envelope what follows it; window in ms and
--   owners as of queue_publish.lua.
-- Returns: an outcome and an id: r redriven, d there is a message of its
--   deduplication key, a it is not there.

local kinds = {'list', 'list', 'hash', 'string', 'string'}
if #KEYS > 5 then kinds[6] = 'string' end
local bad = mistyped(unpack(kinds))
if bad then return bad end
local answered = redis.call('GET', KEYS[5])
if answered then return {'r', answered} end -- an earlier try of this call
local now, now_ms = instants()
local id = string.format('%06x', math.floor(now_ms / 16777216)) .. string.format('%06x', now_ms % 16777216) .. ARGV[3]
local key = KEYS[5 + 1]
if key and redis.call('EXISTS', key) == 1 then return {'d', ''} end
if redis.call('LREM', KEYS[2], -1, ARGV[1]) == 0 then return {'a', ''} end
redis.call('LPUSH', KEYS[1], PREFIX .. '{"id":"' .. id .. '",' .. ARGV[4])
if key then
  redis.call('SET', key, id, 'PX', ARGV[5])
  if ARGV[6] ~= '' then redis.call('SET', ARGV[6] .. id, key, 'PX', ARGV[5]) end
end
drop_record(KEYS[3], redis.sha1hex(ARGV[1]), ARGV[2])
redis.call('SET', KEYS[5], id, 'PX', '60000')
announce(KEYS[4], now, now)
return {'r', id}
