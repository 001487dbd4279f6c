-- Removes a topic without keys from the registry.
--
-- KEYS: timeline payloads leases dead control runs topics
-- ARGV: topic
-- Returns: '' if it was removed, 'absent' if it was not registered, or 'used' and the
--   name of a key that exists.

for _, key in ipairs({KEYS.timeline, KEYS.payloads, KEYS.leases, KEYS.dead, KEYS.control, KEYS.runs}) do
  if redis.call('TYPE', key).ok ~= 'none' then return 'used ' .. key end
end
if redis.call('SREM', KEYS.topics, ARGV.topic) == 0 then return 'absent' end
return ''
