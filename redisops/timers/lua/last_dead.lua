-- Reads dead letters backwards, the newest first.
--
-- KEYS: dead
-- ARGV: from limit max_bytes
--   from is '+', or '(' and an entry, to begin before it.
-- Returns: where to go on ('' when no more follow), then entry, fields for each.

local bad = mistyped('stream')
if bad then return bad end

local from, bytes = ARGV.from, 0
local out = {''}
while #out < 2 * tonumber(ARGV.limit) do
  local entry = redis.call('XREVRANGE', KEYS.dead, from, '-', 'COUNT', 1)[1]
  if not entry then return out end
  for _, value in ipairs(entry[2]) do bytes = bytes + #value end
  if #out > 1 and bytes > tonumber(ARGV.max_bytes) then break end
  out[#out + 1], out[#out + 2] = entry[1], entry[2]
  from = '(' .. entry[1]
end
out[1] = from
return out
