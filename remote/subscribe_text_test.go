package remote_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// A timer whose texts are not UTF-8 would end the link of its subscriber at each delivery, and
// with it those of all other timers.
func TestTimerWithInvalidTextReachesItsSubscriber(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	var mu sync.Mutex
	got := map[string]*messages.Lease{}
	for id, option := range map[string]wakebell.ScheduleOption{
		"header":      wakebell.Header("k\xff", "v\xff"),
		"correlation": wakebell.CorrelationID("c\xff"),
		"type":        wakebell.ContentType("t\xff"),
	} {
		_, err := wakebell.NewTopic[[]byte](n.topic.Name()).Schedule(t.Context(), n.Client(), []byte("\xff"), wakebell.ID(id), option)
		require.NoError(t, err, id)
	}
	subscribe(t, dial(t, n), remote.Subscription{Topic: n.topic.Name(), Name: "s"}, func(_ context.Context, l *messages.Lease) error {
		mu.Lock()
		defer mu.Unlock()
		got[l.GetId()] = l
		return nil
	})
	n.settled(t)
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, got, 3)
	require.Equal(t, map[string]string{"k\uFFFD": "v\uFFFD"}, got["header"].GetHeaders())
	require.Equal(t, "c\uFFFD", got["correlation"].GetCorrelationId())
	require.Equal(t, "t\uFFFD", got["type"].GetContentType())
	require.Equal(t, "\xff", string(got["type"].GetBody()))
}

// So would a request.
func TestRequestWithInvalidTextIsRefused(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := dial(t, n)
	for _, option := range []wakebell.ScheduleOption{wakebell.Header("k", "\xff"), wakebell.CorrelationID("\xff"), wakebell.ID("\xff")} {
		_, err := n.topic.Schedule(ctx, c, "x", option)
		require.ErrorIs(t, err, wakebell.ErrInvalid)
	}
}

// So would what a handler reports.
func TestReportWithInvalidTextIsRefused(t *testing.T) {
	t.Parallel()
	n := serve(t, remote.Config{})
	c := dialWith(t, n, connection.Config{ScheduleMiddleware: []wakebelltype.ScheduleMiddleware{
		func(next wakebelltype.ScheduleFunc) wakebelltype.ScheduleFunc {
			return func(ctx context.Context, out []*wakebelltype.Outgoing) error {
				out[0].ContentType = "\xff"
				return next(ctx, out)
			}
		},
	}})
	_, err := n.topic.Schedule(t.Context(), n.Client(), "x")
	require.NoError(t, err)
	refused := make(chan [3]error, 1)
	subscribe(t, c, remote.Subscription{Topic: n.topic.Name(), Name: "s"}, func(ctx context.Context, l *messages.Lease) error {
		refused <- [3]error{c.Result(ctx, l, 1), c.Checkpoint(ctx, l, "y"), c.Progress(ctx, l, 0, "\xff")}
		return nil
	})
	for _, err := range receive(t, refused) {
		require.ErrorIs(t, err, wakebell.ErrInvalid)
	}
	n.settled(t) // the ack has reached the node
}
