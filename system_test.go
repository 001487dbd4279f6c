package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(nodeVariable); addr != "" {
		if err := runNode(addr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if spec := os.Getenv(contenderVariable); spec != "" {
		if err := runContender(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	redistest.Waiting(4)
	redistest.Main(m)
}

type invoice struct {
	Number string
	Cents  int
}

func TestATimerReachesItsHandler(t *testing.T) {
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[invoice](redistest.Name(t))
	got := make(chan wakebell.Timer[invoice], 1)
	sys, err := wakebell.New(actor.NewActorSystem(), rdb, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(_ context.Context, t wakebell.Timer[invoice]) error {
			if t.Attempt == 1 {
				return errors.New("not yet")
			}
			got <- t
			return nil
		}, wakebell.RetryBackoff(time.Millisecond, time.Second)),
	}})
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	c := sys.Client()
	id, err := topic.Schedule(t.Context(), c, invoice{"7", 100}, wakebell.In(50*time.Millisecond), wakebell.ID("inv-7"), wakebell.Header("x-tenant", "acme"))
	require.NoError(t, err)
	require.Equal(t, "inv-7", id)
	timer := <-got
	require.Equal(t, "inv-7", timer.ID)
	require.Equal(t, invoice{"7", 100}, timer.Body)
	require.Equal(t, 2, timer.Attempt)
	require.NoError(t, sys.Stop())
	_, _, err = c.Get(t.Context(), topic.Name(), "inv-7")
	require.ErrorIs(t, err, wakebell.ErrNotFound)
	t.Logf("%+v", sys.Counters())
}
