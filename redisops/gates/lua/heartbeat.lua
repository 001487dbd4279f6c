-- Says that a process lives and extends its turns.
--
-- Parts: turns
-- KEYS: presence deadlines ...
--   the state and the stream of each gate whose turn it has.
-- ARGV: process life lease ...
--   life (of the presence) and lease are in µs; then for each turn its ticket and
--   the name of its gate.
-- Returns: a list: now in µs; 1 if the process was not known to live, else 0; a
--   letter for each turn, e extended or l lost; then the names of gates of which
--   something is due, at most 100.

local bad = mistyped('zset', 'zset')
if bad then return bad end

local presence, deadlines, process = KEYS.presence, KEYS.deadlines, ARGV.process
local life, lease = tonumber(ARGV.life), tonumber(ARGV.lease)
local base = ARGV_NAMED
local turns = (#ARGV - base) / 2
local now = micros()

-- What is far from now was written by another clock, or is of the dead. This
-- write comes first because it is allowed when memory is full.
redis.call('ZREMRANGEBYSCORE', presence, '(' .. whole(now + 10 * life), '+inf')
redis.call('ZREMRANGEBYSCORE', presence, '-inf', whole(now - 60e6))
local seen = redis.call('ZSCORE', presence, process)
local last = redis.call('ZSCORE', presence, 'last')
if not last or now - (number(last) or 0) > life / 2 then
  redis.call('ZADD', presence, whole(now + life), 'grace')
end
redis.call('ZADD', presence, whole(now + life), process, whole(now), 'last')

redis.call('PEXPIRE', presence, SHARED)

-- A key of the wrong type is judged by itself: it ends the turn at its gate, and
-- the others are extended.
local kept = whole(math.ceil((lease + IN_USE) / 1e3))
local letters = {}
for i = 1, turns do
  local state, stream, ticket = KEYS[1 + 2 * i], KEYS[2 + 2 * i], ARGV[base + 2 * i - 1]
  if redis.call('TYPE', state).ok == 'hash' and redis.call('HGET', state, 'holder') == ticket then
    redis.call('HSET', state, 'kind', 'h', 'until', whole(now + lease), 'lease', whole(lease))
    redis.call('PEXPIRE', state, kept)
    redis.call('PEXPIRE', stream, kept)
    redis.call('ZADD', deadlines, whole(now + lease), ARGV[base + 2 * i])
    letters[i] = 'e'
  else
    letters[i] = 'l'
  end
end

redis.call('PEXPIRE', deadlines, SHARED)
local due = redis.call('ZRANGEBYSCORE', deadlines, '-inf', whole(now), 'LIMIT', '0', '100')
local lapsed = (not seen or (number(seen) or 0) <= now) and '1' or '0'
return {whole(now), lapsed, table.concat(letters), unpack(due)}
