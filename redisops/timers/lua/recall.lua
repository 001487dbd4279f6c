-- Finds the answers that a call with an idempotency key has stored, with the layout that the
-- topic has: none that was routed with an earlier one can store any after that. It writes
-- nothing.
--
-- Parts: fence
-- KEYS: answers whole
--   those of keyed_each.lua, and that of keyed.lua.
-- ARGV: call ...
--   what distinguishes the call from others with the key; then the ids of its items.
-- Returns: what the second key has, '' for none, then for each id its answer, '' for none.
--   Or an error, if another call has used the key.

local bad = mistyped('hash', 'string')
if bad then return bad end

local of = redis.call('HGET', KEYS.answers, '')
if of and of ~= ARGV.call then return redis.error_reply('WAKEBELLKEY another call') end
local out = {redis.call('GET', KEYS.whole) or ''}
local ids = {}
for i = ARGV_NAMED + 1, #ARGV do ids[#ids + 1] = ARGV[i] end
for i, answer in ipairs(collect('HMGET', KEYS.answers, ids, 1, #ids)) do out[i + 1] = answer or '' end
return out
