-- Removes a topic without timers, dead letters, overrides and runs from the registry,
-- with what is left of the timers that it had.
--
-- KEYS: timeline payloads dead control runs moving leaving leases flow keys order busy rates turns topics
--   moving and leaving are the outboxes of a reshard and of a move to another Redis; topics
--   is timeline on a Cluster, where the registry is in another slot.
-- ARGV: topic
-- Returns: '' if it was removed, 'absent' if it was not registered, or 'used' and the
--   name of a key that has something.

for _, key in ipairs({KEYS.timeline, KEYS.payloads, KEYS.dead, KEYS.control, KEYS.runs, KEYS.moving, KEYS.leaving}) do
  local kind = redis.call('TYPE', key).ok
  -- The stream of dead letters stays when the last of them is gone.
  if kind ~= 'none' and not (kind == 'stream' and redis.call('XLEN', key) == 0) then return 'used ' .. key end
end
-- Without a timeline a lease record belongs to no timer. The hash of a topic that has
-- ever delivered still has its sentinel.
redis.call('UNLINK', KEYS.dead, KEYS.leases, KEYS.flow, KEYS.keys, KEYS.order, KEYS.busy, KEYS.rates, KEYS.turns)
if KEYS.topics ~= KEYS.timeline and redis.call('SREM', KEYS.topics, ARGV.topic) == 0 then return 'absent' end
return ''
