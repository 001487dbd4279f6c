-- Deletes dead letters of a queue.
--
-- KEYS: dlq letters
-- ARGV: ...
--   an entry and a payload of each.
-- Returns: how many were there, as text.

local bad = mistyped('list', 'hash')
if bad then return bad end
local n = 0
for i = 1, #ARGV, 2 do
  local payload = ARGV[i + 1]
  if redis.call('LREM', KEYS[1], -1, payload) > 0 then
    n = n + 1
    drop_record(KEYS[2], redis.sha1hex(payload), ARGV[i])
  end
end
return whole(n)
