-- Puts the timer of a run that its entry has in its outbox: once, even
-- if several nodes send it.
--
-- Parts: tally fence
-- KEYS: timeline payloads leases hint runs counts
-- ARGV: name incarnation run id payload instant
--   of the entry, and the number of the run; instant in seconds. Counts is the
--   timeline where nothing is counted.
-- Returns: put, or known: a run of that number or a later one was put before.

local bad = mistyped('zset', 'hash', 'hash', 'string', 'hash')
if bad then return bad end

local incarnation, last = string.match(redis.call('HGET', KEYS.runs, ARGV.name) or '', '^(%S*) (%d+)$')
if incarnation == ARGV.incarnation and (integer(last) or 0) >= tonumber(ARGV.run) then return 'known' end

local now, instant = clock(), tonumber(ARGV.instant)
local known = head(KEYS.timeline) or math.huge
redis.call('HSET', KEYS.payloads, ARGV.id, ARGV.payload)
redis.call('HSET', KEYS.runs, ARGV.name, ARGV.incarnation .. ' ' .. ARGV.run)
redis.call('ZADD', KEYS.timeline, ARGV.instant, ARGV.id)
redis.call('HDEL', KEYS.leases, ARGV.id)
if KEYS.counts ~= KEYS.timeline then tally(KEYS.counts, now, 's', 1) end
if instant < known then announce(KEYS.hint, instant, now) end
return 'put'
