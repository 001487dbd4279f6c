-- Deletes dead letters, oldest first, a page a call.
--
-- KEYS: dead exchange
-- ARGV: from upto limit max_bytes text prefix older newer call
--   as of walk in letters.lua; upto '' is the newest one there is now; call the
--   number of the call: an equal one is answered again.
-- Returns: where to go on, '' at the end, then upto and how many were deleted.

local bad = mistyped('stream', 'string')
if bad then return bad end
local before = answered(KEYS[2], ARGV[9])
if before then return before end

local upto = ARGV[2]
if upto == '' then upto = newest(KEYS[1]) end
local match = {text = ARGV[5], prefix = ARGV[6], older = tonumber(ARGV[7]), newer = tonumber(ARGV[8])}
local ids = {}
local from = walk(KEYS[1], ARGV[1], upto, tonumber(ARGV[3]), tonumber(ARGV[4]), match, function(id)
  ids[#ids + 1] = id
end)
variadic('XDEL', KEYS[1], ids, 1, #ids)
local out = {from, upto, string.format('%.0f', #ids)}
if #ids > 0 then remember(KEYS[2], ARGV[9], out) end
return out
