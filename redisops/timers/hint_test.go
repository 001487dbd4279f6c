package timers

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// listen starts Listen and waits until it has subscribed.
func (f *fixture) listen(t *testing.T) <-chan exchange.Hint {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	hints := make(chan exchange.Hint, 100)
	done := make(chan error, 1)
	go func() { done <- f.Listen(ctx, []string{f.topic}, func(h exchange.Hint) { hints <- h }) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	require.Equal(t, exchange.Hint{Source: f.topic, Kind: exchange.HintSubscribed}, next(t, hints))
	return hints
}

// quiet requires that no hint was sent: a marker sent now must be the next message.
func (f *fixture) quiet(t *testing.T, hints <-chan exchange.Hint, why string) {
	t.Helper()
	require.NoError(t, f.rdb.Publish(t.Context(), f.key.Hint, "check 1 marker").Err())
	require.Equal(t, "marker", next(t, hints).ID, why)
}

func TestHintsWhenHeadIsLowered(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		hints := f.listen(t)
		f.schedule(t, Entry{ID: "hour", In: time.Hour})
		h := next(t, hints)
		require.Equal(t, exchange.HintDue, h.Kind)
		require.Equal(t, f.topic, h.Source)
		require.InDelta(t, time.Hour, h.In, float64(time.Millisecond))
		require.WithinDuration(t, time.Now(), h.Sent, time.Minute)

		f.schedule(t, Entry{ID: "two hours", In: 2 * time.Hour})
		f.quiet(t, hints, "the head was not lowered")
		f.schedule(t, Entry{ID: "now", In: 0})
		require.Zero(t, next(t, hints).In)
		ttl := f.rdb.PTTL(t.Context(), f.key.Hint).Val()
		require.Positive(t, ttl)
		require.LessOrEqual(t, ttl, 10*time.Second)

		lease := f.Claim(t, 1).Leases[0]
		f.schedule(t, Entry{ID: "gone"})
		require.Zero(t, next(t, hints).In, "the timer of the last hint is claimed")
		_, err := f.Cancel(t.Context(), f.topic, "gone")
		require.NoError(t, err)
		f.schedule(t, Entry{ID: "now too"})
		f.quiet(t, hints, "a hint is outstanding, so pollers already poll")
		require.Empty(t, f.Claim(t, 0).Leases)
		require.EqualValues(t, 1, f.rdb.Exists(t.Context(), f.key.Hint).Val(), "something is due")
		other := f.Claim(t, 5).Leases[0]
		require.Empty(t, f.Claim(t, 5).Leases, "nothing is due")
		require.Zero(t, f.rdb.Exists(t.Context(), f.key.Hint).Val(), "cleared")

		f.Settle(t, storetest.Verdict(exchange.Release, lease))
		require.Zero(t, next(t, hints).In, "a release lowers the head")
		f.Claim(t, 1)
		f.Claim(t, 1)
		nack := storetest.Verdict(exchange.Nack, other)
		nack.Delay = 2 * time.Second
		f.Settle(t, nack)
		require.Equal(t, 2*time.Second, next(t, hints).In.Round(time.Millisecond), "a nack lowers the head")
	})
}

func TestHintsOfCancel(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a\nb c", "pending")
		f.Claim(t, 1)
		hints := f.listen(t)
		_, err := f.Cancel(t.Context(), f.topic, "a\nb c", "pending", "absent")
		require.NoError(t, err)
		h := next(t, hints)
		require.Equal(t, exchange.HintCheck, h.Kind)
		require.Equal(t, "a\nb c", h.ID)
		f.quiet(t, hints, "only the running one is checked")
		_, err = f.CancelAll(t.Context(), f.topic)
		require.NoError(t, err)
		h = next(t, hints)
		require.Equal(t, exchange.HintCheck, h.Kind)
		require.Empty(t, h.ID)
	})
}

func TestListenSurvivesRestart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFixture(t, server.Client(t))
	hints := f.listen(t)
	server.Restart(t)
	require.Equal(t, exchange.HintSubscribed, next(t, hints).Kind)
	require.Eventually(t, func() bool { return f.rdb.Ping(t.Context()).Err() == nil }, 30*time.Second, 10*time.Millisecond)
	f.schedule(t, Entry{ID: "a"})
	require.Equal(t, exchange.HintDue, next(t, hints).Kind)
}

func TestBadHintsAreIgnored(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "due", "due 1", "due x 1", "due 1 x", "due -1 1", "check x ", "other 1 2", "check 1", "control", "control x", "tail", "tail x", "tail 0", "tail -1"} {
		_, ok := readHint("t", text)
		require.False(t, ok, "%q", text)
	}
}

func TestNothingToListenTo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, f.Listen(ctx, nil, nil), context.Canceled)
	require.ErrorIs(t, f.Listen(ctx, []string{""}, nil), wakebelltype.ErrInvalid)
}
