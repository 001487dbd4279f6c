-- Deletes dead letters, oldest first, a page a call.
--
-- Parts: letters
-- KEYS: dead exchange
-- ARGV: from upto limit max_bytes text prefix older newer call
--   as of walk in letters.lua; upto '' is the newest one there is now; call the
--   number of the call: an equal one is answered again.
-- Returns: where to go on, '' at the end, then upto and how many were deleted.

local bad = mistyped('stream', 'string')
if bad then return bad end
local before = answered(KEYS.exchange, ARGV.call)
if before then return before end

local upto = ARGV.upto
if upto == '' then upto = newest(KEYS.dead) end
local match = {text = ARGV.text, prefix = ARGV.prefix, older = tonumber(ARGV.older), newer = tonumber(ARGV.newer)}
local ids = {}
local from = walk(KEYS.dead, ARGV.from, upto, tonumber(ARGV.limit), tonumber(ARGV.max_bytes), match, function(id)
  ids[#ids + 1] = id
end)
variadic('XDEL', KEYS.dead, ids, 1, #ids)
local out = {from, upto, string.format('%.0f', #ids)}
if #ids > 0 then remember(KEYS.exchange, ARGV.call, out) end
return out
