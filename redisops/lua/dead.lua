-- Reads a page of dead letters, oldest first.
--
-- KEYS: dead
-- ARGV: after limit max_bytes
--   after: '' or the stream id to go on after; the first one always passes
--   max_bytes.
-- Returns: '1' when there may be more, else '0', then for each the stream id and
--   its list of fields and values.

local bad = mistyped('stream')
if bad then return bad end

local after, limit, max_bytes = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local out, bytes, listed = {'0'}, 0, 0
while true do
  local start = '-'
  if after ~= '' then start = '(' .. after end
  local entry = redis.call('XRANGE', KEYS[1], start, '+', 'COUNT', 1)[1]
  if not entry then return out end
  for _, value in ipairs(entry[2]) do bytes = bytes + #value end
  if listed == limit or (listed > 0 and bytes > max_bytes) then
    out[1] = '1'
    return out
  end
  after = entry[1]
  out[#out + 1], out[#out + 2] = after, entry[2]
  listed = listed + 1
end
