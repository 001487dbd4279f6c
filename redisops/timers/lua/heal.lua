-- Finds entries of a hash that have no timer in the timeline, a page a call, and
-- removes them. The other entries of a timer stay while its payload does, because they
-- say when it was due. Payloads stay if so many have no timer that timers were lost.
--
-- KEYS: timeline payloads hash
--   hash: the payloads, or other entries of timers.
-- ARGV: cursor count remove
--   remove: 1; 0 to count them only; l to count them, unless they are too many.
-- Returns: the next cursor ('0' at the end), how many were examined, how many
--   have no timer, the bytes read, how many payloads there are more than timers if that
--   is why nothing was examined, else 0, and how many payloads there are; as texts.

local bad = mistyped('zset', 'hash', 'hash')
if bad then return bad end

-- excessive reports whether n of so many entries are too many to be the remains of ended
-- timers, as layout.Excessive does.
local function excessive(n, of) return n > 100 and n * 100 > of end

local function whole(n) return string.format('%.0f', n) end

local of_payloads = KEYS.hash == KEYS.payloads
local stored = redis.call('HLEN', KEYS.payloads)
if of_payloads and ARGV.remove ~= '0' then
  local more = stored - redis.call('ZCARD', KEYS.timeline)
  if excessive(more, stored) then return {ARGV.cursor, '0', '0', '0', whole(more), whole(stored)} end
end

-- A payload may be of any size, so values are read only where the server has no
-- other way to walk a large hash: before Redis 7.4.
local function scan()
  if redis.call('HLEN', KEYS.hash) <= 1000 then return {'0', redis.call('HKEYS', KEYS.hash)}, 1 end
  local page = redis.pcall('HSCAN', KEYS.hash, ARGV.cursor, 'COUNT', ARGV.count, 'NOVALUES')
  if not page.err then return page, 1 end
  return redis.call('HSCAN', KEYS.hash, ARGV.cursor, 'COUNT', ARGV.count), 2
end

local page, step = scan()
local fields, bytes = {}, 0
for i = 1, #page[2], step do
  local field = page[2][i]
  if step == 2 then bytes = bytes + #page[2][i + 1] end
  -- The field '' is the sentinel of the leases, unless a timer has that id.
  if field ~= '' or redis.call('HSTRLEN', KEYS.hash, '') ~= #SENTINEL then fields[#fields + 1] = field end
end
local scores = collect('ZMSCORE', KEYS.timeline, fields, 1, #fields)
local orphans = {}
for i = 1, #fields do
  if not scores[i] and (of_payloads or redis.call('HEXISTS', KEYS.payloads, fields[i]) == 0) then
    orphans[#orphans + 1] = fields[i]
  end
end
if ARGV.remove == '1' then variadic('HDEL', KEYS.hash, orphans, 1, #orphans) end
return {page[1], whole(#fields), whole(#orphans), whole(bytes), '0', whole(stored)}
