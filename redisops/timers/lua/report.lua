-- Stores what a node reports of a topic, or removes it.
--
-- KEYS: reports
-- ARGV: node life report
--   life: for how many ms the report is valid; 0 removes it.
-- Returns: how many nodes have a report.

local bad = mistyped('hash')
if bad then return bad end

-- MOST bounds the nodes with a report. From CROWDED on, those that have expired are
-- removed; the others are while the key expires.
local CROWDED, MOST = 100, 1000

local reports, node = KEYS.reports, ARGV.node
local life = tonumber(ARGV.life)
local now = clock()

local function remove_expired()
  local all, gone = redis.call('HGETALL', reports), {}
  for i = 1, #all, 2 do
    local at = number(string.match(all[i + 1], '^%S*'))
    if not at or at <= now then gone[#gone + 1] = all[i] end
  end
  variadic('HDEL', reports, gone, 1, #gone)
end

if life == 0 then
  redis.call('HDEL', reports, node)
else
  if redis.call('HLEN', reports) >= CROWDED then remove_expired() end
  if redis.call('HLEN', reports) < MOST or redis.call('HEXISTS', reports, node) == 1 then
    redis.call('HSET', reports, node, text(now + life / 1e3) .. ' ' .. ARGV.report)
    if redis.call('PTTL', reports) < life then redis.call('PEXPIRE', reports, ARGV.life) end
  end
end
return string.format('%.0f', redis.call('HLEN', reports))
