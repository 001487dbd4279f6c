package timers

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestRemoveTopic checks that a topic stays while it has a key or a node.
func TestRemoveTopic(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		remove := func() wakebelltype.TopicRemoval {
			t.Helper()
			r, err := f.RemoveTopic(ctx, f.topic)
			require.NoError(t, err)
			return r
		}
		require.Zero(t, remove(), "never used")
		f.due(t, "a")
		require.Equal(t, wakebelltype.TopicRemoval{Existed: true, Use: `key "` + f.key.Timeline + `"`}, remove())
		_, err := f.CancelAll(ctx, f.topic)
		require.NoError(t, err)
		_, err = f.Pause(ctx, f.topic, "ada", "why")
		require.NoError(t, err)
		require.Equal(t, `key "`+f.key.Control+`"`, remove().Use, "a pause is a use")
		_, err = f.Resume(ctx, f.topic)
		require.NoError(t, err)
		for _, outbox := range []string{f.key.Moving(), f.key.Leaving()} {
			require.NoError(t, f.RDB.HSet(ctx, outbox, "1", "timers").Err())
			require.Equal(t, `key "`+outbox+`"`, remove().Use, "timers are on their way")
			require.NoError(t, f.RDB.Del(ctx, outbox).Err())
		}

		f.due(t, "dead")
		stream := storetest.NewStream(f.Source(f.topic, SourceOptions{}))
		stream.Settle(t, storetest.Verdict(exchange.DeadLetter, stream.Claim(t, 1).Leases[0]))
		require.NoError(t, f.RDB.Del(ctx, f.key.Leases).Err())
		require.Equal(t, `key "`+f.key.Dead+`"`, remove().Use)
		_, err = f.DeleteDead(ctx, f.topic, wakebelltype.DeadFilter{})
		require.NoError(t, err)

		listening, stop := context.WithCancel(ctx)
		subscribed, ended := make(chan struct{}, 1), make(chan struct{})
		go func() {
			defer close(ended)
			_ = f.Listen(listening, []string{f.topic}, func(exchange.Hint) { subscribed <- struct{}{} })
		}()
		<-subscribed
		require.Equal(t, "1 nodes", remove().Use)
		all, err := f.Overview(ctx, f.topic)
		require.NoError(t, err)
		require.Equal(t, 1, all[0].Nodes)
		stop()
		<-ended
		require.Eventually(t, func() bool { return remove() == wakebelltype.TopicRemoval{Existed: true} }, time.Minute, 10*time.Millisecond)
		require.Zero(t, remove(), "it was removed")
		require.NotContains(t, f.registered(t), f.topic)
		f.due(t, "b")
		require.Contains(t, f.registered(t), f.topic, "a schedule registers it again")
		_, err = f.RemoveTopic(ctx, "")
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	})
}

// TestRemoveTopicThatHasDelivered removes a topic whose timers were handled, also with
// keys, and whose dead letters were redriven and deleted. Nothing is left of it but what expires.
func TestRemoveTopicThatHasDelivered(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.schedule(t, Entry{ID: "handled", Payload: []byte("p")}, Entry{ID: "keyed", Key: "k", Payload: []byte("p")}, Entry{ID: "dead", Payload: []byte("p")})
		for _, l := range f.Claim(t, 9).Leases {
			verdict := exchange.Ack
			if l.ID == "dead" {
				verdict = exchange.DeadLetter
			}
			f.Settle(t, storetest.Verdict(verdict, l))
		}
		r, err := f.RemoveTopic(ctx, f.topic)
		require.NoError(t, err)
		require.Equal(t, `key "`+f.key.Dead+`"`, r.Use)
		_, err = f.DeleteDead(ctx, f.topic, wakebelltype.DeadFilter{})
		require.NoError(t, err)

		r, err = f.RemoveTopic(ctx, f.topic)
		require.NoError(t, err)
		require.Equal(t, wakebelltype.TopicRemoval{Existed: true}, r)
		for _, key := range f.rdb.Keys(ctx, "*"+f.topic+"*").Val() {
			require.Positive(t, f.rdb.TTL(ctx, key).Val(), key)
		}
		f.due(t, "again")
		require.Len(t, f.Claim(t, 9).Leases, 1, "the topic works as a new one")
	})
}

// registered returns all topics of the registry, which other tests fill as well.
func (f *fixture) registered(t *testing.T) (all []string) {
	t.Helper()
	for cursor := uint64(0); ; {
		names, next, err := f.Topics(t.Context(), cursor)
		require.NoError(t, err)
		if all, cursor = append(all, names...), next; cursor == 0 {
			return all
		}
	}
}
