package life_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

func TestStartAndStopInAnyOrder(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	config := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(wakebell.NewTopic[string](redistest.Name(t)), stacktest.Nothing)}}
	t.Run("stop before start", func(t *testing.T) {
		sys := stacktest.Build(t, rdb, config)
		require.Nil(t, sys.Counters())
		require.NoError(t, sys.Stop())
		require.NoError(t, sys.Stop())
		require.ErrorIs(t, sys.Start(t.Context()), wakebell.ErrStarted)
		require.Nil(t, sys.Counters())
	})
	t.Run("start twice", func(t *testing.T) {
		sys := stacktest.Launch(t, stacktest.Build(t, rdb, config))
		require.ErrorIs(t, sys.Start(t.Context()), wakebell.ErrStarted)
		require.ErrorIs(t, sys.Run(t.Context()), wakebell.ErrStarted)
	})
	t.Run("stop many times at once", func(t *testing.T) {
		sys := stacktest.Launch(t, stacktest.Build(t, rdb, config))
		stopped := make(chan error, 5)
		for range cap(stopped) {
			go func() { stopped <- sys.Stop() }()
		}
		for range cap(stopped) {
			require.NoError(t, stacktest.Receive(t, stopped))
		}
		require.ErrorIs(t, sys.Start(t.Context()), wakebell.ErrStarted)
		require.Len(t, sys.Counters(), 1, "counters remain after Stop")
	})
	t.Run("no handlers", func(t *testing.T) {
		sys := stacktest.Launch(t, stacktest.Build(t, rdb, wakebell.Config{}))
		require.Empty(t, sys.Counters())
		require.NoError(t, sys.Stop())
	})
	t.Run("start with a context that ends", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, stacktest.Build(t, rdb, config).Start(ctx), context.Canceled)
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	started, finish := make(chan struct{}), make(chan struct{})
	sys := stacktest.Build(t, redistest.Shared(t), wakebell.Config{
		DrainTimeout: time.Minute,
		Handlers: []wakebell.Handler{wakebell.Handle(topic, func(ctx context.Context, _ wakebell.Timer[string]) error {
			close(started)
			<-finish
			return ctx.Err()
		})},
	})
	_, err := topic.Schedule(t.Context(), sys.Client(), "x")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- sys.Run(ctx) }()
	stacktest.Receive(t, started)
	cancel()
	<-time.After(20 * time.Millisecond) // it waits for the running handler
	require.Empty(t, ended)
	close(finish)
	require.NoError(t, stacktest.Receive(t, ended))
	require.EqualValues(t, 1, sys.Counters()[topic.Name()].Acked)
}

// Stop names the handlers that do not return and releases their timers.
func TestStopNamesHandlersThatHang(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		started, free := make(chan struct{}), make(chan struct{})
		returned := make(chan struct{})
		sys := stacktest.Launch(t, stacktest.Build(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
				defer close(returned)
				close(started)
				<-free
				return nil
			}, wakebell.LeaseTTL(time.Hour)),
		}}))
		_, err := topic.Schedule(t.Context(), sys.Client(), "x", wakebell.ID("inv-42"))
		require.NoError(t, err)
		stacktest.Receive(t, started)
		err = sys.Stop()
		require.ErrorIs(t, err, wakebell.ErrUnfinished)
		require.ErrorContains(t, err, "inv-42")
		require.ErrorContains(t, err, topic.Name())
		require.Equal(t, err, sys.Stop(), "another Stop returns the same error")
		info, _, err := sys.Client().Get(t.Context(), topic.Name(), "inv-42")
		require.NoError(t, err)
		require.Equal(t, wakebell.StatePending, info.State)

		close(free) // the abandoned handler can change nothing any more
		stacktest.Receive(t, returned)
		require.EqualValues(t, 1, stacktest.Count(t, sys.Client(), topic.Name()))
	})
}

func TestSystemsShareActorSystem(t *testing.T) {
	t.Parallel()
	rdb, shared := redistest.Shared(t), stacktest.ActorSystem()
	handled := make(chan string, 2)
	node := func(name, topic string) (*wakebell.System, wakebell.Topic[string]) {
		of := wakebell.NewTopic[string](topic)
		sys, err := wakebell.New(shared, conntest.New(t, rdb, connection.Config{Logger: stacktest.Quiet}), wakebell.Config{Name: name, DrainTimeout: stacktest.Patience, Handlers: []wakebell.Handler{
			wakebell.Handle(of, func(_ context.Context, timer wakebell.Timer[string]) error {
				handled <- timer.Body
				return nil
			}),
		}})
		require.NoError(t, err)
		return sys, of
	}
	same := redistest.Name(t)
	one, topic := node("one", same)
	two, other := node("two", redistest.Name(t))
	twin, _ := node("one", same)
	stacktest.Launch(t, one)
	stacktest.Launch(t, two)
	err := twin.Start(t.Context())
	require.ErrorIs(t, err, wakebell.ErrNameTaken)
	require.ErrorContains(t, err, `"one"`)

	_, err = topic.Schedule(t.Context(), one.Client(), "first")
	require.NoError(t, err)
	require.Equal(t, "first", stacktest.Receive(t, handled))
	require.NoError(t, one.Stop())
	_, err = other.Schedule(t.Context(), one.Client(), "second")
	require.NoError(t, err)
	require.Equal(t, "second", stacktest.Receive(t, handled), "the other System continues")

	stacktest.Launch(t, twin) // its name is free again
	_, err = topic.Schedule(t.Context(), one.Client(), "third")
	require.NoError(t, err)
	require.Equal(t, "third", stacktest.Receive(t, handled))
}

func TestStartWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client(t, func(o *redis.Options) { o.MaxRetries = -1 })
	topic := wakebell.NewTopic[string]("t")
	handled := make(chan string, 1)
	handler := wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
		handled <- timer.Body
		return nil
	})
	server.Kill()
	sys := stacktest.Build(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{handler}})
	err := sys.Start(t.Context())
	require.ErrorIs(t, err, wakebell.ErrUnavailable)
	require.ErrorContains(t, err, "start: ")
	require.ErrorContains(t, err, server.Addr)
	_, err = topic.Schedule(t.Context(), sys.Client(), "x")
	require.ErrorIs(t, err, wakebell.ErrUnavailable)

	patient := wakebell.Config{WaitForRedis: time.Hour, Handlers: []wakebell.Handler{handler}}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, stacktest.Build(t, rdb, patient).Start(ctx), context.DeadlineExceeded)

	waiting := stacktest.Build(t, rdb, patient)
	started := make(chan error, 1)
	go func() { started <- waiting.Start(t.Context()) }()
	server.Restart(t)
	require.NoError(t, stacktest.Receive(t, started))
	t.Cleanup(func() { require.NoError(t, waiting.Stop()) })
	_, err = topic.Schedule(t.Context(), waiting.Client(), "x")
	require.NoError(t, err)
	require.Equal(t, "x", stacktest.Receive(t, handled))

	require.NoError(t, sys.Start(t.Context()), "a failed start may be repeated")
	require.NoError(t, sys.Stop())
}

// A System survives a restart of Redis, and then delivers the timers that Redis
// stored.
func TestRedisRestartsWhileRunning(t *testing.T) {
	t.Parallel()
	const timers = 50
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	rdb := server.Client(t)
	topic := wakebell.NewTopic[string]("t")
	handled, running, finish := make(chan string, timers), make(chan struct{}), make(chan struct{})
	sys := stacktest.Serve(t, rdb, wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
		if timer.Body == "long" && timer.Attempt == 1 {
			close(running)
			<-finish
		}
		handled <- timer.ID
		return nil
	}, wakebell.LeaseTTL(30*time.Second)))
	_, err := topic.Schedule(t.Context(), sys.Client(), "long", wakebell.ID("long"))
	require.NoError(t, err)
	stacktest.Receive(t, running)
	for i := range timers - 1 {
		_, err := topic.Schedule(t.Context(), sys.Client(), "x", wakebell.ID(strconv.Itoa(i)), wakebell.In(2*time.Second))
		require.NoError(t, err)
	}
	server.Kill()
	close(finish) // Redis is down, so its ack fails and is repeated
	seen := map[string]int{}
	for seen["long"] == 0 { // other timers were first if the machine stalled
		seen[stacktest.Receive(t, handled)]++
	}
	stacktest.Eventually(t, func() bool { return sys.Counters()["t"].Errors > 0 })
	server.Restart(t)

	for len(seen) < timers {
		seen[stacktest.Receive(t, handled)]++
	}
	stacktest.Eventually(t, func() bool { return stacktest.Count(t, sys.Client(), "t") == 0 })
	require.Empty(t, handled, "none twice")
	for id, times := range seen {
		require.Equal(t, 1, times, id)
	}
	stacktest.Eventually(t, func() bool { return sys.Counters()["t"].Acked == timers }) // the poller counts after Redis has removed the timer

	// Hints work again: a timer on an idle topic is delivered promptly.
	stacktest.Eventually(t, func() bool {
		channels, err := rdb.PubSubNumSub(t.Context(), "timers_hint:t").Result()
		return err == nil && channels["timers_hint:t"] == 1
	})
	require.NoError(t, sys.Stop())
}

// A handler's error after its context has ended is not counted as a failure.
func TestErrorDuringDrainIsNotFailure(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		started := make(chan struct{})
		sys := stacktest.Launch(t, stacktest.Build(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Handle(topic, func(ctx context.Context, _ wakebell.Timer[string]) error {
				close(started)
				<-ctx.Done()
				return errors.Join(errors.New("cut short"), context.Cause(ctx))
			}),
		}}))
		_, err := topic.Schedule(t.Context(), sys.Client(), "x", wakebell.ID("x"))
		require.NoError(t, err)
		stacktest.Receive(t, started)
		require.NoError(t, sys.Stop())
		info, _, err := sys.Client().Get(t.Context(), topic.Name(), "x")
		require.NoError(t, err)
		require.Equal(t, wakebell.StatePending, info.State)
		require.Zero(t, info.Failures)
	})
}

func TestStopAndRunDoNotWaitForRedisThatIsDown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Kill()
	dialed := make(chan struct{}, 1)
	rdb := server.Client(t, func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			select {
			case dialed <- struct{}{}:
			default:
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	cfg := wakebell.Config{WaitForRedis: time.Hour}

	waiting, err := wakebell.New(stacktest.ActorSystem(), conntest.New(t, rdb, connection.Config{}), cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan error, 1)
	go func() { started <- waiting.Start(ctx) }()
	stacktest.Receive(t, dialed) // Start is in progress
	require.ErrorIs(t, waiting.Start(ctx), wakebell.ErrStarted)
	require.Nil(t, waiting.Counters())
	require.NoError(t, waiting.Stop(), "while Start is in progress")
	cancel()
	require.Error(t, <-started)

	running, err := wakebell.New(stacktest.ActorSystem(), conntest.New(t, rdb, connection.Config{}), cfg)
	require.NoError(t, err)
	ctx, cancel = context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- running.Run(ctx) }()
	cancel()
	require.NoError(t, <-ran, "Run returns nil when its context ends")
}

// The documented bound of the duration of a Stop matches the bound in the code.
func TestBoundOfStopIsDocumented(t *testing.T) {
	t.Parallel()
	require.Zero(t, actors.StopGrace%time.Second)
	grace := int(actors.StopGrace / time.Second)
	for file, says := range map[string]string{
		"config.go":                          fmt.Sprintf("Stop takes at most %d s longer", grace),
		"docs/architecture.md":               fmt.Sprintf("at most %d s more than `DrainTimeout`", grace),
		"docs/operations.md":                 fmt.Sprintf("at most %d s after `DrainTimeout`, even if something hangs: set the timeout after which your service manager sends SIGKILL to more than %d s", grace, 20+grace),
		"examples/shutdown/main.go":          fmt.Sprintf("more than %d s longer", grace),
		"cmd/wakebell/internal/node/node.go": fmt.Sprintf("at most %d s more", grace),
	} {
		text, err := os.ReadFile(stacktest.Root + file)
		require.NoError(t, err)
		require.Contains(t, string(text), says, file)
	}
}
