-- Adds attempts to the history of a topic, and drops the oldest.
--
-- KEYS: history
-- ARGV: cap max_age node count attempts
--   cap is about how many attempts are kept, max_age for how long, in ms; count is how
--   many there are in attempts, which are packed.
-- Returns: the id of the entry. Its field until counts the attempts up to its own.

local bad = mistyped('stream')
if bad then return bad end

local function field(entry, name)
  for i = 1, #entry[2], 2 do
    if entry[2][i] == name then return tonumber(entry[2][i + 1]) or 0 end
  end
  return 0
end

local newest = redis.call('XREVRANGE', KEYS.history, '+', '-', 'COUNT', 1)[1]
local total = (newest and field(newest, 'until') or 0) + tonumber(ARGV.count)
local id = redis.call('XADD', KEYS.history, '*', 'until', string.format('%.0f', total),
  'node', ARGV.node, 'attempts', ARGV.attempts)
redis.call('PEXPIRE', KEYS.history, ARGV.max_age)
local oldest_ms = clock() * 1000 - tonumber(ARGV.max_age)
for _ = 1, 16 do
  local oldest = redis.call('XRANGE', KEYS.history, '-', '+', 'COUNT', 1)[1]
  if not oldest or oldest[1] == id then break end
  local at = tonumber(string.match(oldest[1], '^%d+'))
  if total - field(oldest, 'until') < tonumber(ARGV.cap) and at >= oldest_ms then break end
  redis.call('XDEL', KEYS.history, oldest[1])
end
return id
