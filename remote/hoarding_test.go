//go:build !race

package remote_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/remote/internal/limits"
)

// One principal holds leases of many topics. Their sum is bounded over all topics,
// and other principals are served meanwhile.
func TestHoardedLeasesAreBoundedForPrincipal(t *testing.T) { //nolint:paralleltest // it measures memory
	const topics, timers, body = 8, 100, 900 << 10
	cfg := withToken()
	cfg.Tokens[otherSecret] = "honest"
	cfg.Token = otherSecret
	cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.LeaseTTL(time.Hour)}
	n := serve(t, cfg)
	hoard, release := dial(t, n), make(chan struct{})
	var held, most atomic.Int64
	large := strings.Repeat("x", body)
	before := int64(heap())
	for i := range topics {
		topic := wakebell.NewTopic[string](fmt.Sprint(redistest.Name(t), "-", i))
		for range timers / 20 {
			drafts := make([]wakebell.Draft, 20)
			for i := range drafts {
				drafts[i] = topic.Draft(large)
			}
			_, err := n.Client().Schedule(t.Context(), drafts...)
			require.NoError(t, err)
		}
		subscribe(t, hoard, remote.Subscription{Topic: topic.Name(), Name: "s", Credits: 10_000}, func(ctx context.Context, l *messages.Lease) error {
			now := held.Add(int64(len(l.GetBody())))
			for old := most.Load(); now > old; old = most.Load() {
				most.CompareAndSwap(old, now)
			}
			defer held.Add(-int64(len(l.GetBody())))
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}
	eventually(t, func() bool { return held.Load() > int64(limits.Leases.Principal)*3/4 })
	honest, err := remote.Dial(t.Context(), n.server.Address(), conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{Config: remote.Config{Token: otherSecret}, DeadLink: time.Minute})
	require.NoError(t, err)
	t.Cleanup(honest.Close)
	handled := make(chan string, 10)
	subscribe(t, honest, remote.Subscription{Topic: n.topic.Name(), Name: "s"}, func(_ context.Context, l *messages.Lease) error {
		handled <- l.GetId()
		return nil
	})
	for i := range 10 {
		_, err := n.topic.Schedule(t.Context(), honest, "x", wakebell.ID(fmt.Sprint(i)))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i), receive(t, handled))
	}
	grown := int64(0)
	for range 10 {
		<-time.After(100 * time.Millisecond)
		grown = max(grown, int64(heap())-before)
	}
	t.Logf("%d MiB held, heap grown by %d MiB", most.Load()>>20, grown>>20)
	require.LessOrEqual(t, most.Load(), int64(limits.Leases.Principal+topics<<20), "one lease of each topic, and the bound of a principal")
	require.Less(t, grown, int64(400<<20), "the node and the client are one process; without the bound, 720 MiB would be held")

	close(release) // leases that had no room are delivered now
	for i := range topics {
		eventually(t, func() bool {
			st, err := n.Client().Stats(t.Context(), fmt.Sprint(redistest.Name(t), "-", i))
			return err == nil && st.Total == 0
		})
	}
}
