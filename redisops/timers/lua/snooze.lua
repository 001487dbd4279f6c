-- Takes the attempts and failures back that nacks have counted of timers that were snoozed.
--
-- It runs after the exchange with the nacks, so that exchange.lua has no case for it. A timer
-- is left alone unless it waits as that nack has left it: if it was claimed, scheduled again,
-- cancelled or moved to another shard since, the snooze has counted as a failure, which does no
-- other harm.
--
-- KEYS: timeline leases
-- ARGV: ...
--   for each timer: its id, and its claims and failures at the claim.
-- Returns: how many were taken back.

local bad = mistyped('zset', 'hash')
if bad then return bad end

local timeline, leases, done = KEYS.timeline, KEYS.leases, 0
redis.call('HDEL', leases, SENTINEL) -- a first write that Redis allows when its memory is full allows the others
for i = ARGV_NAMED + 1, #ARGV, 3 do
  local id, claims, failures = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local score = redis.call('ZSCORE', timeline, id)
  local r = current(redis.call('HGET', leases, id), score)
  if r and r.state == 'w' and r.claims == claims and r.failures == failures + 1 then
    r.claims, r.failures = math.max(0, claims - 1), failures
    redis.call('HSET', leases, id, record('w', r, score))
    done = done + 1
  end
end
return string.format('%.0f', done)
