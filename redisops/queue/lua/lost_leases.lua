-- Gives messages whose deadline was lost a new one, a page of the tokens a call: they are
-- delivered again when it ends, unless their consumer extends it before. A message that is
-- delivered at most once has no token, so it is never among them.
--
-- Parts: shared
-- KEYS: tokens deadlines processing gone
-- ARGV: cursor count life
--   life: of a deadline, in ms.
-- Returns: the next cursor ('0' at the end), the bytes read, and how many messages got a
--   deadline; as texts.

local bad = mistyped('hash', 'zset', 'list', 'set')
if bad then return bad end

-- SEEN is how many entries of the processing list are looked at from either end. A message
-- in the midst of a longer one is found later.
local SEEN = 1000

local function processed(stored)
  return redis.call('LPOS', KEYS.processing, stored, 'RANK', -1, 'MAXLEN', SEEN) or
    redis.call('LPOS', KEYS.processing, stored, 'MAXLEN', SEEN)
end

local _, now_ms = instants()
local deadline = whole(now_ms + tonumber(ARGV.life))
local page = redis.call('HSCAN', KEYS.tokens, ARGV.cursor, 'COUNT', ARGV.count)
local held, bytes = {}, 0
for i = 1, #page[2], 2 do
  held[#held + 1], bytes = page[2][i], bytes + #page[2][i]
end
local known, given = collect('ZMSCORE', KEYS.deadlines, held, 1, #held), {}
for i, stored in ipairs(held) do
  if not known[i] and processed(stored) and redis.call('SISMEMBER', KEYS.gone, noted(stored)) == 0 then
    given[#given + 1], given[#given + 2] = deadline, stored
  end
end
variadic('ZADD', KEYS.deadlines, given, 1, #given)
return {page[1], whole(bytes), whole(#given / 2)}
