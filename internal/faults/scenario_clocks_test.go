package faults

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// clocks runs two nodes in virtual time, on a Redis whose clock is an hour fast and
// then an hour slow.
func clocks(w *world) {
	for i, ahead := range []time.Duration{time.Hour, -time.Hour} {
		synctest.Test(w.T, func(t *testing.T) {
			w.skewed(t, fmt.Sprintf("client-%d", i+1), ahead)
			<-time.After(5 * time.Second) // protoactor's timers have to end before the bubble
		})
	}
}

// skewed runs one direction. All instants in the delivery log are of Redis's clock.
func (w *world) skewed(t *testing.T, name string, ahead time.Duration) {
	t.Helper()
	redisNow := func() time.Time { return time.Now().Add(ahead) }
	rdb := clocked(t, redisNow)
	cfg := w.config()
	cfg.DrainTimeout = -1
	for n := range 2 {
		sys, err := cfg.System(rdb, recorder{w.deliveries, fmt.Sprintf("%s's node-%d", name, n+1), redisNow}, quiet)
		require.NoError(t, err)
		require.NoError(t, sys.Start(t.Context()))
		defer func() { require.NoError(t, sys.Stop()) }()
	}
	client := newClient(t, rdb)
	for i := range 200 {
		p := plan{id: fmt.Sprintf("%s/%d", name, i), work: usualWork(w.rng)}
		p.work.Generation = 1
		if w.rng.IntN(4) > 0 {
			p.in = between(w.rng, 0, 20*time.Second)
		}
		called := redisNow()
		answers, err := client.Schedule(t.Context(), p.draft())
		require.NoError(t, err)
		w.deliveries.RecordCall(p.id, Call{
			Kind: CallSchedule, Client: name, Generation: 1, Called: called, Returned: redisNow(),
			Earliest: called.Add(p.in), Due: answers[0].Due, Found: found(answers[0].Outcome),
		})
		w.tried()
		<-time.After(between(w.rng, 0, 50*time.Millisecond))
	}
	<-time.After(time.Minute)
	require.Zero(t, rdb.ZCard(t.Context(), "timers_timeline:"+topic).Val(), "timers are left")
}

// recorder records the lines of a node in the harness's own process.
type recorder struct {
	deliveries *DeliveryLog
	name       string
	now        func() time.Time
}

func (r recorder) report(line Line) {
	line.At = r.now()
	r.deliveries.RecordLine(r.name, line)
}

// clocked connects to an embedded Redis whose clock is set before every command.
func clocked(t *testing.T, now func() time.Time) *redis.Client {
	t.Helper()
	var server *miniredis.Miniredis
	rdb, server := redistest.Embedded(t, func(o *redis.Options) {
		dial := o.Dialer
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			return clockedConn{c, func() { server.SetTime(now()) }}, err
		}
	})
	return rdb
}

type clockedConn struct {
	net.Conn
	set func()
}

func (c clockedConn) Write(p []byte) (int, error) {
	c.set()
	return c.Conn.Write(p)
}
