-- Takes joins that are to be checked, so that other nodes leave them alone for a while.
--
-- KEYS: joins
-- ARGV: count hold
--   count: the most joins; hold: for how many seconds they are left alone.
-- Returns: in how many seconds another one is to be checked, '' for none, and the joins.

local bad = mistyped('zset')
if bad then return bad end

local now = clock()
local due = redis.call('ZRANGEBYSCORE', KEYS.joins, '-inf', text(now), 'LIMIT', 0, ARGV.count)
local again = text(now + tonumber(ARGV.hold))
for _, join in ipairs(due) do redis.call('ZADD', KEYS.joins, again, join) end
local first = head(KEYS.joins)
table.insert(due, 1, first and text(math.max(0, first - now)) or '')
return due
