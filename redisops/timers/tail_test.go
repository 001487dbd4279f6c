package timers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// tail watches a topic until the end of the test, and waits until it is
// attached.
func (f *fixture) tail(t *testing.T) <-chan wakebelltype.Event {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	events := make(chan wakebelltype.Event, 1000)
	done := make(chan error, 1)
	go func() {
		done <- f.Tail(ctx, f.topic, func(e wakebelltype.Event) bool { events <- e; return true })
	}()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	require.Equal(t, wakebelltype.Event{Kind: wakebelltype.EventAttached, Topic: f.topic}, next(t, events))
	return events
}

func TestEventsArriveComplete(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		events := f.tail(t)
		sent := []wakebelltype.Event{
			{Kind: wakebelltype.EventNode},
			{Kind: wakebelltype.EventDelivered, At: time.UnixMicro(1795246719123456).UTC(), ID: "a\n\x1b\"é", Attempt: 2, Lateness: time.Millisecond},
			{
				Kind: wakebelltype.EventDead, At: time.UnixMicro(1795246719123457).UTC(), ID: "b", Attempt: 3,
				Took: time.Hour, RetryIn: time.Microsecond, Text: "why\nnot", Entry: "1-2", Missed: 7,
			},
			{Kind: "of a newer version"},
		}
		for i := range sent {
			sent[i].Node, sent[i].Topic = "here", f.topic
		}
		require.NoError(t, f.PublishEvents(t.Context(), f.topic, nil))
		require.NoError(t, f.PublishEvents(t.Context(), f.topic, sent))
		for _, e := range sent {
			require.Equal(t, e, next(t, events))
		}
		// A node is named once.
		require.NoError(t, f.PublishEvents(t.Context(), f.topic, sent[:2]))
		require.Equal(t, sent[1], next(t, events))
		for _, text := range []string{"", "x", "[]", `{"events":1}`, "null"} {
			require.NoError(t, f.rdb.Publish(t.Context(), f.key.events, text).Err())
		}
		require.NoError(t, f.PublishEvents(t.Context(), f.topic, sent[2:3]))
		require.Equal(t, sent[2], next(t, events), "messages of another format are ignored")
	})
}

// TestTailAnnouncesItself checks that nodes receive the announcement of a watcher,
// and that the loop ends when yield returns false.
func TestTailAnnouncesItself(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		hints := f.listen(t)
		var attached int
		require.NoError(t, f.Tail(t.Context(), f.topic, func(e wakebelltype.Event) bool { attached++; return false }))
		require.Equal(t, 1, attached)
		hint := next(t, hints)
		require.Less(t, hint.Watched, watchFor)
		hint.Watched = 0 // some microseconds, if the process stood still
		require.Equal(t, exchange.Hint{Source: f.topic, Kind: exchange.HintTail, In: watchFor}, hint)
	})
}

func TestTailSurvivesRestart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFixture(t, server.Client(t))
	events := f.tail(t)
	e := wakebelltype.Event{Kind: wakebelltype.EventNode, Topic: f.topic, Node: "here"}
	for range 2 {
		require.NoError(t, f.PublishEvents(t.Context(), f.topic, []wakebelltype.Event{e}))
		require.Equal(t, e, next(t, events), "each node is named again")
		server.Restart(t)
		require.Equal(t, wakebelltype.EventAttached, next(t, events).Kind)
		require.Eventually(t, func() bool { return f.rdb.Ping(t.Context()).Err() == nil }, 30*time.Second, 10*time.Millisecond)
	}
}

func TestTailErrors(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	for name, channels := range map[string][]string{"deaf": {"&timers_hint:*"}, "mute": {"&timers_events:*"}} {
		rights := append([]string{"ACL", "SETUSER", name, "on", ">secret", "+@all", "~*", "resetchannels"}, channels...)
		args := make([]any, len(rights))
		for i, r := range rights {
			args[i] = r
		}
		require.NoError(t, admin.Do(t.Context(), args...).Err())
		f := newFixture(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = name, "secret" }))
		err := f.Tail(t.Context(), f.topic, func(wakebelltype.Event) bool { return true })
		require.ErrorIs(t, err, wakebelltype.ErrChannelDenied, name)
		require.ErrorContains(t, err, "timers_", "it names the channel: "+name)
		if name == "deaf" {
			err = f.PublishEvents(t.Context(), f.topic, []wakebelltype.Event{{Kind: wakebelltype.EventNode}})
			require.ErrorIs(t, err, wakebelltype.ErrChannelDenied)
		}
	}
	f := newFixture(t, server.Client(t))
	require.ErrorIs(t, f.Tail(t.Context(), "", nil), wakebelltype.ErrInvalid)
	server.Stop()
	require.ErrorIs(t, f.Tail(t.Context(), f.topic, nil), exchange.ErrUnavailable)
}

func TestLastDead(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		last, err := f.LastDead(t.Context(), f.topic, 10)
		require.NoError(t, err)
		require.Empty(t, last)
		var want []string
		for i := range 7 {
			id := fmt.Sprint(i)
			f.schedule(t, Entry{ID: id, Payload: []byte(strings.Repeat(id, 400<<10))}) // two to a page
			f.Settle(t, storetest.Verdict(exchange.DeadLetter, f.Claim(t, 1).Leases[0]))
			want = append(want, id)
		}
		for _, n := range []int{1, 2, 3, 6, 7, 8, 1000} {
			last, err := f.LastDead(t.Context(), f.topic, n)
			require.NoError(t, err)
			var got []string
			for _, d := range last {
				got = append(got, d.ID)
				require.Equal(t, strings.Repeat(d.ID, 400<<10), string(d.Payload))
			}
			require.Equal(t, want[max(0, 7-n):], got)
		}
		for _, n := range []int{0, -1, 1001} {
			_, err := f.LastDead(t.Context(), f.topic, n)
			require.ErrorIs(t, err, wakebelltype.ErrInvalid)
		}
		_, err = f.LastDead(t.Context(), "", 1)
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	})
}
