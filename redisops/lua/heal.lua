-- Finds entries of a hash that have no timer in the timeline, a page a call, and
-- removes them.
--
-- KEYS: timeline hash
-- ARGV: cursor count remove
--   remove: 1, or 0 to leave them.
-- Returns: the next cursor ('0' at the end), how many were examined, how many
--   have no timer, and the bytes read; as texts.

local bad = mistyped('zset', 'hash')
if bad then return bad end

local page = redis.call('HSCAN', KEYS[2], ARGV[1], 'COUNT', ARGV[2])
local fields, bytes = {}, 0
for i = 1, #page[2], 2 do
  bytes = bytes + #page[2][i + 1]
  -- The field '' is the sentinel of the leases, unless a timer has that id.
  if page[2][i] ~= '' or page[2][i + 1] ~= SENTINEL then fields[#fields + 1] = page[2][i] end
end
local scores = collect('ZMSCORE', KEYS[1], fields, 1, #fields)
local orphans = {}
for i = 1, #fields do
  if not scores[i] then orphans[#orphans + 1] = fields[i] end
end
if ARGV[3] == '1' then variadic('HDEL', KEYS[2], orphans, 1, #orphans) end
return {
  page[1], string.format('%.0f', #fields), string.format('%.0f', #orphans),
  string.format('%.0f', bytes),
}
