package main

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/internal/program"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/remote"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestSubscriber(t *testing.T) {
	t.Parallel()
	const token = "known-to-both-of-them"
	sys, err := wakebell.New(actor.NewActorSystem(), conntest.New(t, redistest.Start(t).Client(t), connection.Config{}), wakebell.Config{})
	require.NoError(t, err)
	server, err := remote.Serve(sys, remote.Config{
		Tokens: map[string]string{token: "ringers"},
		HandlerOptions: []wakebell.HandlerOption{
			wakebell.LeaseTTL(5 * time.Second), wakebell.RetryBackoff(10*time.Millisecond, 10*time.Millisecond),
		},
	})
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	t.Cleanup(func() {
		require.NoError(t, sys.Stop())
		server.Stop()
	})
	schedule := func(id, sound string) {
		_, err := Bells.Schedule(t.Context(), sys.Client(), sound, wakebell.ID(id))
		require.NoError(t, err)
	}
	start := func() *program.Program {
		p := program.StartAs(t, []string{server.Address()}, "WAKEBELL_TOKEN="+token)
		require.Equal(t, "waiting for bells", p.Line())
		return p
	}

	first := start()
	schedule("a", "ding")
	require.Equal(t, "a: ding, attempt 1", first.Line())
	schedule("b", "crack")
	require.Equal(t, "b cracks", first.Line())
	require.Equal(t, "b: crack, attempt 2", first.Line())

	require.Eventually(t, func() bool { // otherwise b comes again
		stats, err := sys.Client().Stats(t.Context(), Bells.Name())
		return err == nil && stats.Total == 0
	}, 10*time.Second, 10*time.Millisecond)
	first.Kill()
	schedule("c", "dong")
	second := start()
	// It may have been in transit to the first subscriber; then it is delivered when
	// that lease expires.
	require.Regexp(t, `^c: dong, attempt \d$`, second.Line())
	second.Terminate()
	require.Equal(t, "\n", second.Rest())
}
