-- Removes records whose dead letters are gone, unless they have changed.
--
-- KEYS: letters
-- ARGV: ...
--   a field and its value of each.
-- Returns: how many were removed, as text.

local bad = mistyped('hash')
if bad then return bad end
local n = 0
for i = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then n = n + redis.call('HDEL', KEYS[1], ARGV[i]) end
end
return whole(n)
