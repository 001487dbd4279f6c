-- Accepts a fencing token for a resource unless a newer one was seen.
--
-- KEYS: state guard
-- ARGV: resource ticket
-- Returns: a letter and the newest token seen: a accepted, s stale, r regressed:
--   the token has the turn, and yet the resource has seen a newer one.

local bad = mistyped('hash', 'hash')
if bad then return bad end

local resource, ticket = ARGV[1], ARGV[2]
local seen = redis.call('HGET', KEYS[2], resource)
if seen and number(seen) > tonumber(ticket) then
  if redis.call('HGET', KEYS[1], 'holder') == ticket then return 'r' .. seen end
  return 's' .. seen
end
if seen ~= ticket then redis.call('HSET', KEYS[2], resource, ticket) end
return 'a' .. ticket
