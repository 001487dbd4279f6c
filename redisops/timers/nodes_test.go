package timers_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestAnnouncements(t *testing.T) {
	t.Parallel()
	rdb, topic := redistest.Shared(t), redistest.Name(t)
	s, err := timers.New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	key, hints := s.Keys().Of(topic).Nodes, s.Keys().Of(topic).Hint
	subscription := rdb.Subscribe(t.Context(), hints)
	defer func() { _ = subscription.Close() }()
	_, err = subscription.Receive(t.Context())
	require.NoError(t, err)
	source := s.Source(topic, timers.SourceOptions{})
	announce := func(action exchange.AnnounceAction, node string) []string {
		answer, err := source.Announce(t.Context(), exchange.Announcement{Action: action, Node: node, Lease: time.Minute})
		require.NoError(t, err)
		require.LessOrEqual(t, answer.Expires, time.Minute)
		return answer.Nodes
	}
	requireHint := func(kind string) {
		message, err := subscription.ReceiveMessage(t.Context())
		require.NoError(t, err)
		require.Contains(t, message.Payload, kind+" ")
	}

	require.Empty(t, announce(exchange.AnnounceStay, "a"), "a removed node does not come back by itself")
	require.Equal(t, []string{"a"}, announce(exchange.AnnounceJoin, "a"))
	requireHint("joined")
	require.Equal(t, []string{"a"}, announce(exchange.AnnounceJoin, "a"))
	require.ElementsMatch(t, []string{"a", "b"}, announce(exchange.AnnounceJoin, "b"))
	requireHint("joined")
	require.ElementsMatch(t, []string{"a", "b"}, announce(exchange.AnnounceStay, "b"))
	announce(exchange.AnnounceInvite, "b")
	requireHint("joined")
	require.Positive(t, rdb.PTTL(t.Context(), key).Val())
	require.Equal(t, []string{"a"}, announce(exchange.AnnounceLeave, "b"))
	requireHint("left")
	require.NoError(t, rdb.ZAdd(t.Context(), key, redis.Z{Score: 1, Member: "dead"}).Err())
	require.Equal(t, []string{"a"}, announce(exchange.AnnounceStay, "a"), "expired announcements are removed")
	requireHint("left")
	require.NoError(t, source.AskForHelp(t.Context(), 3))
	requireHint("help")
	require.Empty(t, announce(exchange.AnnounceDissolve, "a"))
	requireHint("left")
	require.Zero(t, rdb.Exists(t.Context(), key).Val())
}
