-- Finds which of some runs were cancelled.
--
-- KEYS: cancelled
-- ARGV: ...
--   for each run its id, its token, and when the token was given out in unix seconds, ''
--   if that is unknown.
-- Returns: one string, a 1 for each run that was cancelled, else a 0.

local bad = mistyped('zset')
if bad then return bad end

local marks, out = {}, {}
for i = 1, #ARGV, 3 do
  local token = number(ARGV[i + 1])
  marks[#marks + 1] = token and text(token) .. ' ' .. ARGV[i] or ''
end
local found = collect('ZMSCORE', KEYS.cancelled, marks, 1, #marks)
local all = number(redis.call('ZSCORE', KEYS.cancelled, 'all') or '')
for i = 1, #marks do
  local granted = number(ARGV[3 * i])
  out[i] = (found[i] or all and granted and granted <= all) and '1' or '0'
end
return table.concat(out)
