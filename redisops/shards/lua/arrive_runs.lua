-- Notes runs of recurring schedules that were put while the topic had other shards.
--
-- KEYS: runs
-- ARGV: name ...
--   name: of a schedule; then its incarnation and run as they were noted, and the same
--   for the other schedules.
-- Returns: how many notes were written, as a text.

local bad = mistyped('hash')
if bad then return bad end

-- A note of another incarnation was written here later, so it stays.
local function older(stored, noted)
  if not stored then return true end
  local of, run = string.match(stored, '^(%S*) (%d+)$')
  local incarnation, last = string.match(noted, '^(%S*) (%d+)$')
  return of ~= nil and of == incarnation and tonumber(run) < tonumber(last)
end

local written, name = 0, ARGV.name
for i = ARGV_NAMED + 1, #ARGV, 2 do
  if older(redis.call('HGET', KEYS.runs, name), ARGV[i]) then
    redis.call('HSET', KEYS.runs, name, ARGV[i])
    written = written + 1
  end
  name = ARGV[i + 1]
end
return string.format('%.0f', written)
