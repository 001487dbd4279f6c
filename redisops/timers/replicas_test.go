package timers

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/wakebelltype"
)

// replicated starts a server and a replica that has caught up with it.
func replicated(t *testing.T) (*fixture, *redistest.Server, *redis.Client) {
	t.Helper()
	primary, replica := redistest.Start(t, "--repl-diskless-sync-delay", "0"), redistest.Start(t)
	host, port := "127.0.0.1", primary.Addr[len("127.0.0.1:"):]
	rdb := replica.Client(t)
	require.NoError(t, rdb.ReplicaOf(t.Context(), host, port).Err())
	of := primary.Client(t)
	f := newFixture(t, of)
	require.Eventually(t, func() bool {
		return of.Wait(t.Context(), 1, 10*time.Millisecond).Val() == 1
	}, 30*time.Second, 10*time.Millisecond)
	return f, replica, rdb
}

func TestReplicasConfirm(t *testing.T) {
	t.Parallel()
	f, replica, copied := replicated(t)
	e := Entry{ID: "a", Payload: []byte("x"), In: time.Hour, Replicas: 1, ReplicaTimeout: 20 * time.Second}
	out := f.schedule(t, e)
	require.Equal(t, wakebelltype.OutcomeCreated, out[0].Outcome)
	require.Equal(t, 1, out[0].Replicas)
	require.NoError(t, copied.ZScore(t.Context(), f.key.Timeline, "a").Err(), "the replica has the timer")
	require.Zero(t, f.schedule(t, Entry{ID: "plain"})[0].Replicas)

	replica.Pause()
	e.ID, e.ReplicaTimeout = "b", 50*time.Millisecond
	out, err := f.Schedule(t.Context(), f.topic, e)
	require.ErrorIs(t, err, wakebelltype.ErrTooFewReplicas)
	var short *wakebelltype.ReplicasError
	require.ErrorAs(t, err, &short)
	require.Equal(t, wakebelltype.ReplicasError{Want: 1, Got: 0, Waited: 50 * time.Millisecond}, *short)
	require.Equal(t, wakebelltype.OutcomeCreated, out[0].Outcome)
	require.Zero(t, out[0].Replicas)
	require.Equal(t, "b", f.get(t, "b").ID, "it is stored")

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // the schedule itself comes in time
	defer cancel()
	e.ReplicaTimeout = time.Minute
	_, err = f.Schedule(ctx, f.topic, e)
	require.ErrorIs(t, err, wakebelltype.ErrTooFewReplicas, "the context's deadline bounds the wait")

	replica.Resume()
	e.ReplicaTimeout = 20 * time.Second
	out, err = f.Schedule(t.Context(), f.topic, e)
	require.NoError(t, err, "repeating the call waits again")
	require.Equal(t, wakebelltype.OutcomeReplaced, out[0].Outcome)
	require.Equal(t, 1, out[0].Replicas)
	e.Replicas, e.ReplicaTimeout = 2, 20*time.Millisecond
	require.Eventually(t, func() bool { // the existing one may take longer
		_, err = f.Schedule(t.Context(), f.topic, e)
		return errors.As(err, &short) && short.Got == 1
	}, 30*time.Second, time.Millisecond)
}

// TestReplicasMayTakeLongerThanRead checks that a wait longer than the client's
// read timeout does not time out.
func TestReplicasMayTakeLongerThanRead(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t, func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = 4*time.Second, -1 })
	f := newFixture(t, rdb)
	_, err := f.Schedule(t.Context(), f.topic, Entry{ID: "a", Replicas: 1, ReplicaTimeout: 5 * time.Second})
	require.ErrorIs(t, err, wakebelltype.ErrTooFewReplicas)
}

// TestReplicasOfLargeBatch checks that a batch of several round trips is stored as
// a whole even if too few replicas confirm.
func TestReplicasOfLargeBatch(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t).Client(t))
	entries := make([]Entry, layout.BatchEntries+1)
	for i := range entries {
		entries[i] = Entry{ID: string(rune('a' + i)), Replicas: i % 2, ReplicaTimeout: time.Millisecond}
	}
	out, err := f.Schedule(t.Context(), f.topic, entries...)
	require.ErrorIs(t, err, wakebelltype.ErrTooFewReplicas)
	require.Len(t, out, len(entries))
	require.EqualValues(t, len(entries), f.rdb.ZCard(t.Context(), f.key.Timeline).Val())
}

func TestReplicasWithoutScriptOrRight(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFixture(t, server.Client(t))
	e := Entry{ID: "a", Replicas: 1, ReplicaTimeout: time.Millisecond}
	require.NoError(t, f.rdb.ScriptFlush(t.Context()).Err())
	_, err := f.Schedule(t.Context(), f.topic, e)
	require.ErrorIs(t, err, wakebelltype.ErrTooFewReplicas)

	require.NoError(t, f.rdb.Do(t.Context(), "ACL", "SETUSER", "plain", "on", ">secret", "+@all", "-wait", "~*", "&*").Err())
	plain := newFixture(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "plain", "secret" }))
	_, err = plain.Schedule(t.Context(), plain.topic, e)
	require.ErrorIs(t, err, wakebelltype.ErrDenied)
	require.ErrorContains(t, err, "stored, but not confirmed")
	require.Equal(t, "a", plain.get(t, "a").ID)
}

func TestReplicasAreBounded(t *testing.T) {
	t.Parallel()
	for _, e := range []Entry{
		{ID: "a", Replicas: -1},
		{ID: "a", Replicas: MaxReplicas + 1, ReplicaTimeout: time.Second},
		{ID: "a", Replicas: 1},
		{ID: "a", Replicas: 1, ReplicaTimeout: MaxReplicaTimeout + 1},
	} {
		b := NewBatch("", 1)
		require.ErrorIs(t, b.Add("t", &e), wakebelltype.ErrInvalid)
	}
	require.ErrorIs(t, &wakebelltype.ReplicasError{}, wakebelltype.ErrTooFewReplicas)
}
