-- Deletes up to 500 messages of a queue: of those that wait, or of those that
-- are held. Their deduplication keys are freed.
--
-- Parts: shared
-- KEYS: pending processing deadlines tokens counts refs ids backrefs gone hint freed flow
-- ARGV: what owners
--   what: pending or processing; owners as of free in queue.lua.
-- Returns: how many were deleted, and how many are left; as texts.

local bad = mistyped('list', 'list', 'zset', 'hash', 'hash', 'hash', 'hash', 'hash', 'set', 'string', 'set', 'zset')
if bad then return bad end
test_owners(ARGV.owners)
local list = ARGV.what == 'pending' and KEYS.pending or KEYS.processing
local n, bytes, deleted = 0, 0, {} -- deleted: ids of messages whose keys are not known
local leases = {} -- members of the flow control's state, by which MaxInFlight counts them
while n < 500 and bytes < 1048576 do
  local part = redis.call('RPOP', list, 16)
  if not part or #part == 0 then break end
  local found = redis.call('HMGET', KEYS.tokens, unpack(part))
  local tokens = {}
  for i, stored in ipairs(part) do
    n, bytes = n + 1, bytes + #stored
    if found[i] then tokens[#tokens + 1], leases[#leases + 1] = found[i], 'l' .. found[i] end
    if not free(ARGV.owners, stored) then deleted[#deleted + 1] = ordered_id(stored) end
  end
  redis.call('HDEL', KEYS.counts, unpack(part))
  if list == KEYS.processing then
    redis.call('ZREM', KEYS.deadlines, unpack(part))
    redis.call('HDEL', KEYS.tokens, unpack(part))
    if redis.call('EXISTS', KEYS.gone) == 1 then
      for _, stored in ipairs(part) do unnote(KEYS.gone, stored) end
    end
    forget_claims(KEYS.refs, KEYS.ids, KEYS.backrefs, tokens)
  end
end
free_ids(KEYS.freed, deleted)
local left = redis.call('LLEN', list)
if #leases > 0 and redis.call('ZREM', KEYS.flow, unpack(leases)) > 0 then
  redis.pcall('PUBLISH', KEYS.hint, 'free ' .. text(clock()))
end
if left == 0 and list == KEYS.processing then recheck(KEYS.hint, '', clock()) end
return {whole(n), whole(left)}
