-- Flow off: put before exchange.lua for queues without flow control. Their exchanges have
-- no further commands, keys or arguments.
--
-- Gives: flow

local flow = nil
