-- Looks at the schedule: what is due within a horizon, and a page by rank.
--
-- Parts: lock
-- KEYS: key key
--   the schedule and the lock.
-- ARGV: token horizon offset first last
--   token is ours where the lock is to be taken, or empty; horizon in seconds;
--   offset of the page of the due; first and last rank of the other page.
-- Returns: now, the holder of the lock or an empty string, the ms it lasts, how
--   many members of the due follow, then members and scores of both pages.

local now = clock()
if ARGV.token ~= '' then take(KEYS[2], ARGV.token) end
local holder, left = lock(KEYS[2])
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '0', text(now + tonumber(ARGV.horizon)), 'WITHSCORES', 'LIMIT', ARGV.offset, '1000')
local out = {text(now), holder, left, string.format('%d', #due / 2)}
for i = 1, #due do out[#out + 1] = due[i] end
if tonumber(ARGV.last) >= 0 then
  local page = redis.call('ZRANGE', KEYS[1], ARGV.first, ARGV.last, 'WITHSCORES')
  for i = 1, #page do out[#out + 1] = page[i] end
end
return out
