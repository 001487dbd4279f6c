-- Adds turns that ended to the counts of their gates.
--
-- KEYS: ...
--   the durations of each gate.
-- ARGV: days ...
--   for how many days counts are kept; then for each gate the numbers of turns by the
--   index of their bound, from 0, with spaces between them.
-- Returns: 1.

local days, base = tonumber(ARGV.days), ARGV_NAMED
local today = math.floor(clock() / 86400)
for i = 1, #KEYS do
  local index, added = 0, false
  for n in string.gmatch(ARGV[base + i], '%d+') do
    if n ~= '0' then
      local field = string.format('%.0f:%d', today, index)
      local total = redis.pcall('HINCRBY', KEYS[i], field, n)
      added = added or total == tonumber(n)
    end
    index = index + 1
  end
  if added then -- the first of the day: forget old days
    redis.pcall('EXPIRE', KEYS[i], string.format('%.0f', (days + 1) * 86400))
    local fields, gone = redis.pcall('HKEYS', KEYS[i]), {}
    for j = 1, #fields do
      local day = string.match(fields[j], '^(%d+):')
      if not day or tonumber(day) <= today - days then gone[#gone + 1] = fields[j] end
    end
    variadic('HDEL', KEYS[i], gone, 1, #gone)
  end
end
return '1'
