-- Reads one timer.
--
-- KEYS: timeline payloads leases
-- ARGV: id max_payload
-- Returns: now, score, record ('' for none), the bytes of the payload, and the
--   payload, '' when it has more than max_payload; nothing when the timer is
--   absent.

local bad = mistyped('zset', 'hash', 'hash')
if bad then return bad end

local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score or redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 then return {} end
local rec = redis.call('HGET', KEYS[3], ARGV[1]) or ''
local size, payload = redis.call('HSTRLEN', KEYS[2], ARGV[1]), ''
if size <= tonumber(ARGV[2]) then payload = redis.call('HGET', KEYS[2], ARGV[1]) end
return {text(clock()), score, rec, string.format('%.0f', size), payload}
