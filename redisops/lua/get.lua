-- Reads one timer.
--
-- KEYS: timeline payloads leases
-- ARGV: id
-- Returns: now, score, record ('' for none), payload; nothing when the timer
--   is absent.

local bad = mistyped('zset', 'hash', 'hash')
if bad then return bad end

local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
local payload = score and redis.call('HGET', KEYS[2], ARGV[1])
if not payload then return {} end
local rec = redis.call('HGET', KEYS[3], ARGV[1]) or ''
return {text(clock()), score, rec, payload}
