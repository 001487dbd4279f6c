-- Announces a node of a topic to the others, or removes its announcement.
--
-- KEYS: nodes hint
-- ARGV: action node lease
--   join, stay, invite, leave or dissolve; the node; for how long it is announced, in ms.
-- Returns: in how many ms the first announcement expires, and the nodes that are
--   announced, at most 1,000 of them.

local bad = mistyped('zset', 'string')
if bad then return bad end

local nodes, action = KEYS.nodes, ARGV.action
local lease = tonumber(ARGV.lease)
local now = clock()
local gone = redis.call('ZREMRANGEBYSCORE', nodes, '-inf', text(now))
local joined = false
if action == 'dissolve' then
  gone = gone + redis.call('DEL', nodes)
elseif action == 'leave' then
  gone = gone + redis.call('ZREM', nodes, ARGV.node)
else
  local known = redis.call('ZSCORE', nodes, ARGV.node)
  if known or action == 'join' then
    redis.call('ZADD', nodes, text(now + lease / 1e3), ARGV.node)
    redis.call('PEXPIRE', nodes, string.format('%.0f', lease))
    joined = not known or action == 'invite'
  end
end
if joined then
  redis.pcall('PUBLISH', KEYS.hint, 'joined ' .. text(now))
elseif gone > 0 then
  redis.pcall('PUBLISH', KEYS.hint, 'left ' .. text(now))
end
local all = redis.call('ZRANGE', nodes, 0, 999)
local first = head(nodes)
table.insert(all, 1, string.format('%.0f', first and math.max(0, math.min(math.ceil((first - now) * 1e3), lease)) or lease))
return all
