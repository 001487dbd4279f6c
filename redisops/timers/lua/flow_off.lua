-- Flow off: put before exchange.lua for topics without flow control, in place of
-- flow.lua. Their exchanges have no further commands, keys or arguments.
--
-- Gives: flow

local flow = nil
