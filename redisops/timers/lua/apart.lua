-- Ends a batch whose payloads travel apart, in the transaction of schedule.lua
-- and of the command that writes them to apart. It also runs if
-- one of those two failed, and decides by the field with which schedule.lua has marked the
-- payloads that it moved there.
--
-- KEYS: apart payloads
-- ARGV: none
-- Returns: 1 if the payloads are in place, 0 if those of the batch were removed
--   because schedule.lua did not run.

if redis.call('HDEL', KEYS.apart, '\255') == 0 then
  redis.call('UNLINK', KEYS.apart)
  return 0
end
redis.call('RENAME', KEYS.apart, KEYS.payloads)
return 1
