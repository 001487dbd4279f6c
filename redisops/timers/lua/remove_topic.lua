-- Removes a topic without keys from the registry.
--
-- KEYS: timeline payloads leases dead control runs topics
-- ARGV: topic
-- Returns: '' if it was removed, 'absent' if it was not registered, or 'used' and the
--   name of a key that exists.

for _, key in ipairs({KEYS.timeline, KEYS.payloads, KEYS.leases, KEYS.dead, KEYS.control, KEYS.runs}) do
  local kind = redis.call('TYPE', key).ok
  -- The stream of dead letters stays when the last one is gone.
  if kind ~= 'none' and not (kind == 'stream' and redis.call('XLEN', key) == 0) then return 'used ' .. key end
end
redis.call('UNLINK', KEYS.dead)
if redis.call('SREM', KEYS.topics, ARGV.topic) == 0 then return 'absent' end
return ''
