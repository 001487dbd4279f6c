package queue

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// seed fills the lists of a queue, 10,000 entries in a call. It pushes messages to
// pending, or to processing with an expired lease, or dead letters as Python writes
// them.
var seedQueue = redis.NewScript(`
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
end`)

func (f *fixture) seed(t testing.TB, what string, n int) {
	t.Helper()
	list := map[string]string{"pending": f.keys.pending, "processing": f.keys.processing, "dead": f.keys.dlq}[what]
	for from := 0; from < n; from += 10_000 {
		keys := []string{list, f.keys.deadlines, f.keys.tokens, f.keys.counts}
		err := seedQueue.Run(t.Context(), f.rdb, keys, what, from).Err()
		require.ErrorIs(t, err, redis.Nil)
	}
}
