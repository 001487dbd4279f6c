-- Brings what is known of the dead letters of a queue in line with their list,
-- which the peer changes: those that it added get a place, records of those that
-- it took are removed.
--
-- KEYS: dlq places records
-- ARGV: none
-- Returns: how many records were removed, and 1 when there is more to do, else 0;
--   as texts.

local bad = mistyped('list', 'zset', 'hash')
if bad then return bad end
local behind = open(KEYS[1], KEYS[2], KEYS[3], math.floor(clock() * 1e6))
local n = close(KEYS[1], KEYS[2], KEYS[3], behind)
local more = behind > 0 or redis.call('ZCARD', KEYS[2]) > redis.call('LLEN', KEYS[1])
return {whole(n), more and '1' or '0'}
