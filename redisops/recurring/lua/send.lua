-- Puts the timer of a run that its entry has in its outbox: once, however often
-- and by whichever node it is sent.
--
-- KEYS: timeline payloads leases hint runs
-- ARGV: name incarnation run id payload instant
--   of the entry, and the number of the run; instant in seconds.
-- Returns: put, or known: a run of that number or a later one was put before.

local bad = mistyped('zset', 'hash', 'hash', 'string', 'hash')
if bad then return bad end

local incarnation, last = string.match(redis.call('HGET', KEYS[5], ARGV[1]) or '', '^(%S*) (%d+)$')
if incarnation == ARGV[2] and (integer(last) or 0) >= tonumber(ARGV[3]) then return 'known' end

local now, instant = clock(), tonumber(ARGV[6])
local known = head(KEYS[1]) or math.huge
redis.call('HSET', KEYS[2], ARGV[4], ARGV[5])
redis.call('HSET', KEYS[5], ARGV[1], ARGV[2] .. ' ' .. ARGV[3])
redis.call('ZADD', KEYS[1], ARGV[6], ARGV[4])
redis.call('HDEL', KEYS[3], ARGV[4])
if instant < known then announce(KEYS[4], instant, now) end
return 'put'
