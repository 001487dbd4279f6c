package storetest

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// queueScript writes 10,000 entries, from a number on.
var queueScript = redis.NewScript(`
for from = tonumber(ARGV[2]), tonumber(ARGV[2]) + 9999, 100 do
  local list, deadlines, tokens, counts = {}, {}, {}, {}
  for i = from, from + 99 do
    local stored = 'letter ' .. i % 10
    if ARGV[1] ~= 'dead' then
      local id = string.format('%012x7%019x', 1e12 + i, i)
      stored = '\30RMQ1:{"id":"' .. id .. '","payload":"message ' .. i .. '"}'
    end
    list[#list + 1] = stored
    deadlines[#deadlines + 1], deadlines[#deadlines + 2] = i + 1, stored
    tokens[#tokens + 1], tokens[#tokens + 2] = stored, i
    counts[#counts + 1], counts[#counts + 2] = stored, 1
  end
  redis.call('LPUSH', KEYS[1], unpack(list))
  if ARGV[1] == 'processing' then
    redis.call('ZADD', KEYS[2], unpack(deadlines))
    redis.call('HSET', KEYS[3], unpack(tokens))
    redis.call('HSET', KEYS[4], unpack(counts))
  end
end
return 0`)

// QueueKeys are the keys that FillQueue writes: the list of what, and those of leases.
type QueueKeys struct{ List, Deadlines, Tokens, Counts string }

// FillQueue adds n entries, rounded up to 10,000, to a list of a queue as Python writes them:
// messages, with leases that have expired if what is "processing", or dead letters if it is "dead".
func FillQueue(ctx context.Context, rdb redis.Scripter, keys QueueKeys, what string, n int) error {
	for from := 0; from < n; from += 10_000 {
		if err := queueScript.Run(ctx, rdb, []string{keys.List, keys.Deadlines, keys.Tokens, keys.Counts}, what, from).Err(); err != nil {
			return fmt.Errorf("fill a queue: %w", err)
		}
	}
	return nil
}
