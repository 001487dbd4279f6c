-- Reads a page of dead letters, oldest first.
--
-- Parts: letters
-- KEYS: dead
-- ARGV: from upto limit max_bytes text prefix older newer
--   as of walk in letters.lua; from '-' is the start, upto '+' the end.
-- Returns: where to go on, '' at the end, then for each the stream id and its
--   list of fields and values.

local bad = mistyped('stream')
if bad then return bad end

local match = {text = ARGV.text, prefix = ARGV.prefix, older = tonumber(ARGV.older), newer = tonumber(ARGV.newer)}
local out = {''}
out[1] = walk(KEYS.dead, ARGV.from, ARGV.upto, tonumber(ARGV.limit), tonumber(ARGV.max_bytes), match, function(id, values)
  out[#out + 1], out[#out + 2] = id, values
end)
return out
