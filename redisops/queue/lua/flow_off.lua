-- Flow off: put before exchange.lua for queues without flow control. Their exchanges have
-- no further commands, keys or arguments.

local flow = nil
