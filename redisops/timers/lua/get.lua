-- Reads one timer.
--
-- KEYS: timeline payloads leases keys
-- ARGV: id max_payload
-- Returns: now, score, record ('' for none), the bytes of the payload, and the
--   payload, '' when it has more than max_payload, and the entry of its key, '' for
--   none; nothing when the timer is absent.

local bad = mistyped('zset', 'hash', 'hash', 'hash')
if bad then return bad end

local score = redis.call('ZSCORE', KEYS.timeline, ARGV.id)
if not score or redis.call('HEXISTS', KEYS.payloads, ARGV.id) == 0 then return {} end
local rec = redis.call('HGET', KEYS.leases, ARGV.id) or ''
local size, payload = redis.call('HSTRLEN', KEYS.payloads, ARGV.id), ''
if size <= tonumber(ARGV.max_payload) then payload = redis.call('HGET', KEYS.payloads, ARGV.id) end
return {text(clock()), score, rec, string.format('%.0f', size), payload,
  redis.call('HGET', KEYS.keys, ARGV.id) or ''}
