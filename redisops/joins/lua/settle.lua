-- Notes how parts of a join have ended. The first end of a part stays.
--
-- KEYS: join parts ends
-- ARGV: name close ...
--   name: as in enlist.lua; close: 1 closes the join to further parts; then for each part
--   itself and its end: d done, x dead, c cancelled or m missing, and a text.
-- Returns: one letter: a there is no such join; w it is open, or waits for parts, or its timer
--   was run; e all parts have ended, and its timer is to be run. Then the codes of the ends
--   that are new.

local bad = mistyped('hash', 'zset', 'hash')
if bad then return bad end

local name = redis.call('HGET', KEYS.join, 'name')
if not name or ARGV.name ~= '' and name ~= ARGV.name then return 'a' end
-- The first write must be one that Redis allows when its memory is full: a part of which no
-- end is noted could not be settled, and a full Redis not be drained.
redis.call('HDEL', KEYS.ends, '')
if ARGV.close == '1' then redis.call('HSET', KEYS.join, 'state', 'c') end

local new, now = {}, text(clock())
for i = ARGV_NAMED + 1, #ARGV, 2 do
  local part, ended = ARGV[i], ARGV[i + 1]
  if redis.call('ZSCORE', KEYS.parts, part) and redis.call('HEXISTS', KEYS.ends, part) == 0 then
    local how = string.sub(ended, 1, 1)
    redis.call('HSET', KEYS.ends, part, how .. ' ' .. now .. ' ' .. string.sub(ended, 2))
    redis.call('HINCRBY', KEYS.join, how, 1)
    new[#new + 1] = how
  end
end
local ended = redis.call('HLEN', KEYS.ends)
if #new > 0 and #new == ended then
  local life = redis.call('PTTL', KEYS.join)
  if life > 0 then redis.call('PEXPIRE', KEYS.ends, life) end
end

local state = redis.call('HMGET', KEYS.join, 'state', 'ran')
if state[1] == 'c' and not state[2] and ended >= redis.call('ZCARD', KEYS.parts) then return 'e' .. table.concat(new) end
return 'w' .. table.concat(new)
