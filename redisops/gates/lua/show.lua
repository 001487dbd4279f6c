-- Shows a gate: who has the turn, and who waits.
--
-- KEYS: state stream guard holds
-- ARGV: most
--   the most tickets to list.
-- Returns: a list: now in µs; the ticket of the turn, or 0; its owner; its kind;
--   until when it is good, in µs; the last ticket issued, or 0; the tickets in the
--   queue, without the turn; resources and tokens of the guard as a list, 1,000 of
--   them if there are more; the durations of turns as a list of fields and values; when
--   the turn began, in µs, or 0; then tickets and owners in order.

local bad = mistyped('hash', 'stream', 'hash', 'hash')
if bad then return bad end

local t = redis.call('TIME')
local state = redis.call('HMGET', KEYS.state, 'holder', 'owner', 'kind', 'until', 'last', 'began')
local most, holder = tonumber(ARGV.most), state[1] or ''
local total = redis.call('XLEN', KEYS.stream)
local rest = {}
local guard
if redis.call('HLEN', KEYS.guard) > 1000 then
  guard = redis.call('HRANDFIELD', KEYS.guard, '1000', 'WITHVALUES')
else
  guard = redis.call('HGETALL', KEYS.guard)
end
local listed = redis.call('XRANGE', KEYS.stream, '-', '+', 'COUNT', string.format('%.0f', most + 1))
for _, e in ipairs(listed) do
  local ticket = string.match(e[1], '^%d+')
  if ticket == holder then
    total = total - 1
  elseif #rest < 2 * most then
    rest[#rest + 1], rest[#rest + 2] = ticket, e[2][2] or ''
  end
end
return {
  string.format('%.0f', tonumber(t[1]) * 1e6 + tonumber(t[2])),
  holder ~= '' and holder or '0', state[2] or '', state[3] or '', state[4] or '0', state[5] or '0',
  string.format('%.0f', total), guard, redis.call('HGETALL', KEYS.holds),
  holder ~= '' and string.match(state[6] or '', '^' .. holder .. ' (%d+)$') or '0', unpack(rest),
}
