-- Rate limits per key off: put before flow_keys.lua, in place of flow_key_rate.lua, for
-- topics without them.
--
-- Gives: key_rate

local key_rate = nil
