-- Brings what is known of the dead letters of a queue in line with their list,
-- which the peer changes: those that it added get a place, records of those that
-- it took are removed.
--
-- Parts: shared dead
-- KEYS: dlq places records
-- ARGV: none
-- Returns: how many records were removed, and 1 when there is more to do, else 0;
--   as texts.

local bad = mistyped('list', 'zset', 'hash')
if bad then return bad end
local behind = open(KEYS.dlq, KEYS.places, KEYS.records, math.floor(clock() * 1e6))
local n = close(KEYS.dlq, KEYS.places, KEYS.records, behind)
local more = behind > 0 or redis.call('ZCARD', KEYS.places) > redis.call('LLEN', KEYS.dlq)
return {whole(n), more and '1' or '0'}
