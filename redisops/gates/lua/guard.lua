-- Accepts a fencing token for a resource unless a newer one was seen, or no turn
-- ever had it.
--
-- Parts: turns
-- KEYS: state stream guard mark
-- ARGV: resource ticket life elsewhere
--   life is how long, in µs, the guard remembers; elsewhere is 1 where the gate
--   itself is on another Redis, so that nothing here says which tokens there are.
-- Returns: a code and a token: a accepted, s stale and the newest that was used,
--   r regressed: the same, yet the token has the turn; o old: issued before what
--   the guard remembers; u unknown: above the one given, the last that had the turn;
--   f full: this many resources are remembered.

local bad = mistyped('hash', 'stream', 'hash', 'string')
if bad then return bad end

-- RESOURCES bounds what is remembered of one gate.
local RESOURCES = 100000

local resource, ticket, life, now = ARGV.resource, tonumber(ARGV.ticket), tonumber(ARGV.life), micros()
local state = redis.call('HMGET', KEYS.state, 'holder', 'process', 'granted', 'last')
local holder, process = state[1] or '', state[2] or ''

-- in_turn: the token has the turn, or may have it because its process has it and
-- passes it on without asking first.
local function in_turn()
  if holder == ARGV.ticket then return true end
  if holder == '' then return false end
  local found = redis.call('XRANGE', KEYS.stream, entry(ARGV.ticket), entry(ARGV.ticket))[1]
  return found ~= nil and string.match(found[2][2] or '', '^(.*)#%d+$') == process
end

local function bound()
  if ARGV.elsewhere == '1' then return now + AHEAD end
  -- The state of an earlier version has no granted.
  local granted = integer(state[3]) or integer(holder) or integer(state[4])
  return granted or mark_of({mark = KEYS.mark})
end

local live = in_turn()
if not live then
  local highest = bound()
  if ticket > highest then return 'u' .. whole(highest) end
  local removed = redis.call('HGET', KEYS.guard, REMOVED)
  if removed and ticket <= (integer(removed) or 0) then return 's' .. removed end
end
local seen = redis.call('HGET', KEYS.guard, resource)
local newest = integer(seen)
if newest and newest > ticket then
  if holder == ARGV.ticket then return 'r' .. seen end
  return 's' .. seen
end
-- What is forgotten was issued longer ago than a life, and so was all before it.
if not newest and not live and ticket < now - life then return 'o' .. whole(now - life) end
if not newest then
  local count = redis.call('HLEN', KEYS.guard)
  if count > 16 then
    local some = redis.call('HRANDFIELD', KEYS.guard, '3', 'WITHVALUES')
    for i = 1, #some, 2 do
      if (integer(some[i + 1]) or 0) < now - life then redis.call('HDEL', KEYS.guard, some[i]) end
    end
  end
  if count >= RESOURCES then return 'f' .. whole(count) end
end
if seen ~= ARGV.ticket then redis.call('HSET', KEYS.guard, resource, ARGV.ticket) end
local kept = math.ceil((math.max(0, ticket - now) + life) / 1e3)
if redis.call('PTTL', KEYS.guard) < kept then redis.call('PEXPIRE', KEYS.guard, whole(kept)) end
return 'a' .. ARGV.ticket
