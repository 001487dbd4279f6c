package gates

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// everyStep runs all operations of a gate, with a hand-over from f to another
// process.
func (f *fixture) everyStep(t *testing.T) {
	t.Helper()
	a, b := f, f.other()
	first, _ := a.join(t)
	second, _ := b.join(t)
	a.beat(t, first)
	places, err := f.Places(t.Context(), []gate.Held{{Gate: f.gate, Ticket: first}, {Gate: f.gate, Ticket: second}})
	require.NoError(t, err)
	require.Equal(t, []gate.Place{gate.Granted, gate.Waiting}, places)
	require.NoError(t, f.Guard(t.Context(), f.gate, "db", uint64(first), false))
	released, err := f.Release(t.Context(), f.gate, uint64(first), f.terms)
	require.NoError(t, err)
	require.True(t, released)
	require.Equal(t, second, b.held(t))
	require.Equal(t, uint64(second), f.show(t).Holder.Fence)
	_, err = f.Repair(t.Context(), f.gate, 0, f.terms)
	require.NoError(t, err)
	listed := false
	for g, err := range f.List(t.Context(), "") {
		require.NoError(t, err)
		listed = listed || g.Name == f.gate
	}
	require.True(t, listed)
	other := f.other()
	other.gate = f.gate + ".removed"
	other.join(t)
	removed, err := f.Remove(t.Context(), other.gate, true, f.terms)
	require.NoError(t, err)
	require.True(t, removed.Existed)
}

// TestGatesWithDocumentedRights checks that the rights in docs/keys.md suffice.
func TestGatesWithDocumentedRights(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	common := []any{"+@read", "+@write", "+@scripting", "+@pubsub", "+@connection", "+time", "~{gates}:*"}
	for user, more := range map[string][]any{"hearing": {"&{gates}:signal:*"}, "deaf": nil} {
		args := append([]any{"ACL", "SETUSER", user, "reset", "on", ">secret"}, common...)
		require.NoError(t, server.Client(t).Do(t.Context(), append(args, more...)...).Err())
		f := newFixture(t, server.Client(t, storetest.NoRetries, func(o *redis.Options) { o.Username, o.Password = user, "secret" }))
		f.everyStep(t)
		f.give(t, f.held(t))

		ctx, cancel := context.WithCancel(t.Context())
		err := f.Listen(ctx, f.process, cancel, func(gate.Signal) {})
		cancel()
		if user == "deaf" {
			require.ErrorIs(t, err, wakebelltype.ErrChannelDenied)
		} else {
			require.ErrorIs(t, err, context.Canceled)
		}
		require.NoError(t, server.Client(t).FlushAll(t.Context()).Err())
	}
}

// On a Cluster gates are in many slots, on all masters, and a listing has all of them in
// the order of their names.
func TestGatesOnCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t)
	rdb := cluster.Client(t)
	s, err := New(rdb, wakebelltype.GateKeys{}, nil)
	require.NoError(t, err)
	f := (&fixture{Store: s}).other()
	var names []string
	for i := range 30 {
		f = f.other()
		f.gate = fmt.Sprintf("gate-%02d", i)
		f.everyStep(t)
		names = append(names, f.gate)
		require.NoError(t, s.AddHolds(t.Context(), map[string]gate.Holds{f.gate: {1}, f.gate + ".other": {2}}))
		require.EqualValues(t, 1, turnsOf(f.show(t))[0])
	}
	for _, master := range cluster {
		require.NotEmpty(t, master.Client(t).Keys(t.Context(), "{gates:*}:state:*").Val())
	}
	for after, want := range map[string][]string{"": names, "gate-17": names[18:]} {
		var listed []string
		for g, err := range s.List(t.Context(), after) {
			require.NoError(t, err)
			listed = append(listed, g.Name)
		}
		require.Equal(t, want, listed)
	}

	b, heard := f.other(), make(chan gate.Signal, 10)
	ctx, cancel := context.WithCancel(t.Context())
	subscribed, ended := make(chan struct{}, 1), make(chan error)
	go func() {
		ended <- s.Listen(ctx, b.process, func() { subscribed <- struct{}{} }, func(g gate.Signal) { heard <- g })
	}()
	<-subscribed
	info := f.show(t)
	ticket, _ := b.join(t)
	_, err = s.Release(t.Context(), f.gate, info.Holder.Fence, f.terms)
	require.NoError(t, err)
	require.Equal(t, ticket, (<-heard).Ticket)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)

	_, err = New(rdb, wakebelltype.GateKeys{State: "states"}, nil)
	require.ErrorIs(t, err, wakebelltype.ErrUnsupported)
	require.ErrorContains(t, err, "{tag}")
}

// TestGateWhoseClockIsSetBack checks that a clock that is set back delays a gate
// by a lease at most.
func TestGateWhoseClockIsSetBack(t *testing.T) {
	t.Parallel()
	rdb, m := redistest.Embedded(t)
	f := newFixture(t, rdb)
	now := time.Now()
	m.SetTime(now)
	a, b := f, f.other()
	a.terms.Lease = time.Minute
	_, turn := a.join(t)
	require.True(t, turn)
	ticket, turn := b.join(t)
	require.False(t, turn)
	m.SetTime(now.Add(-time.Hour))
	require.Zero(t, b.held(t), "the holder may still be running")
	m.SetTime(now.Add(-time.Hour + 59*time.Second))
	require.Zero(t, b.held(t))
	m.SetTime(now.Add(-time.Hour + 61*time.Second))
	require.Equal(t, ticket, b.held(t))
}

// TestGateWhoseStateIsDeleted checks that waiters keep their place when the state
// is deleted by hand: the process whose ticket is pending has the turn.
func TestGateWhoseStateIsDeleted(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		a, b := f, f.other()
		first, _ := a.join(t)
		second, _ := b.join(t)
		require.NoError(t, f.rdb.Del(t.Context(), f.keys(f.gate).state(f.gate)).Err())
		require.Zero(t, b.held(t))
		require.Equal(t, uint64(first), f.show(t).Holder.Fence)
		require.Equal(t, []bool{false}, a.beat(t, first).Lost)
		third, _ := b.join(t)
		require.Greater(t, third, second)
		require.True(t, a.give(t, first))
		require.Equal(t, second, b.held(t))
	})
}
