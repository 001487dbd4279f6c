package main

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestTopics(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--count", "3", "--in", "1h")
	b.fine("schedule", "-t", "TOPIC")
	peer := b.topic + ".peer" // only a Python peer knows it
	require.NoError(t, b.rdb.ZAdd(t.Context(), "timers_timeline:"+peer, redis.Z{Score: 4e9, Member: "x"}).Err())
	b.golden("topics.jsonl", b.fine("topics", "--prefix", b.topic, "-o", "json"))
	b.golden("topics_discover.jsonl", b.fine("topics", "--prefix", b.topic, "--discover", "-o", "json"))
	require.Contains(t, b.fine("topics"), b.topic)
}
