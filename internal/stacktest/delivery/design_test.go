package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/faultproxy"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Each test replays a sequence that an earlier design handled incorrectly, with the
// whole stack on a real Redis. The tests of package redisops cover the same sequences
// for the store alone.

// request reads the counts of an exchange from a command; ok is false for other
// commands.
func request(command []string) (extends int, ok bool) {
	const keys, acks = 8, 6 // as in the header of lua/exchange.lua
	if !strings.EqualFold(command[0], "evalsha") || len(command) < 3+keys+acks+5 || command[2] != strconv.Itoa(keys) {
		return 0, false
	}
	extends, err := strconv.Atoi(command[3+keys+acks+4])
	return extends, err == nil
}

// An extension gives the lease a new token. Redis would refuse an ack with the old
// token that was sent at the same time.
func TestExtensionCannotOvertakeAck(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.Start(t, redistest.SharedAddr(t))
	extending, answer := make(chan struct{}), make(chan struct{})
	var exchanges atomic.Int32 // sent while the answer is held back
	var once sync.Once
	proxy.SetRule(func(command []string) (fate faultproxy.Fate) {
		extends, ok := request(command)
		if !ok {
			return fate
		}
		exchanges.Add(1)
		if extends > 0 {
			once.Do(func() {
				exchanges.Store(0)
				fate = faultproxy.Hold(answer)
				close(extending)
			})
		}
		return fate
	})
	topic := wakebell.NewTopic[string](redistest.Name(t))
	var delivered atomic.Int32
	returned := make(chan struct{})
	sys := stacktest.Serve(t, redistest.Shared(t, func(o *redis.Options) { o.Addr = proxy.Addr }),
		wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
			if delivered.Add(1) == 1 {
				<-extending
				close(returned)
			}
			return nil
		}, wakebell.LeaseTTL(6*time.Second)))
	_, err := topic.Schedule(t.Context(), sys.Client(), "x")
	require.NoError(t, err)
	stacktest.Receive(t, returned)
	<-time.After(50 * time.Millisecond) // enough time for an ack that does not wait
	require.Zero(t, exchanges.Load(), "the ack must wait for the answer to the extension")
	close(answer)

	stacktest.Eventually(t, func() bool { return sys.Counters()[topic.Name()].Acked == 1 })
	counters := sys.Counters()[topic.Name()]
	require.Zero(t, counters.Superseded+counters.Cancelled+counters.Lost, "no refusal")
	require.EqualValues(t, 1, delivered.Load())
	require.Zero(t, stacktest.Count(t, sys.Client(), topic.Name()))
}

// With go-redis's retries, a client repeats a call up to three times after its reply
// was lost: it once claimed 40 timers and received 10. The poller therefore disables
// these retries and repeats the call itself.
func TestLostRepliesLoseNoTimerAndRepeatNone(t *testing.T) {
	t.Parallel()
	for name, retries := range map[string]int{"the client's own retries": 3, "no retries": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const timers = 300
			proxy := faultproxy.Start(t, redistest.SharedAddr(t))
			var seen, lost atomic.Int32
			proxy.SetRule(func(command []string) faultproxy.Fate {
				if _, ok := request(command); ok && seen.Add(1)%3 == 0 {
					lost.Add(1)
					return faultproxy.Lose()
				}
				return faultproxy.Fate{}
			})
			topic := wakebell.NewTopic[int](redistest.Name(t))
			c := stacktest.Client(t, redistest.Shared(t), connection.Config{})
			drafts := make([]wakebell.Draft, timers)
			for i := range drafts {
				drafts[i] = topic.Draft(i)
			}
			_, err := c.Schedule(t.Context(), drafts...)
			require.NoError(t, err)

			var handled [timers]atomic.Int32
			sys := stacktest.Serve(t, redistest.Shared(t, func(o *redis.Options) { o.Addr, o.MaxRetries = proxy.Addr, retries }),
				wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[int]) error {
					handled[timer.Body].Add(1)
					<-time.After(10 * time.Millisecond) // slow enough to disable prefetch: replies of many exchanges can be lost
					if timer.Attempt != 1 {
						return wakebell.Reject(fmt.Errorf("attempt %d", timer.Attempt))
					}
					return nil
				}, wakebell.MaxConcurrent(10), wakebell.LeaseTTL(time.Hour)))
			stacktest.Eventually(t, func() bool { return stacktest.Count(t, c, topic.Name()) == 0 }, "no timer remains leased")
			stacktest.Eventually(t, func() bool { return sys.Counters()[topic.Name()].Acked == timers })
			require.Greater(t, lost.Load(), int32(10))
			for i := range handled {
				require.EqualValues(t, 1, handled[i].Load(), i)
			}
			require.Empty(t, stacktest.DeadLetters(t, c, topic.Name()))
		})
	}
}

// Redis does not roll a script back, so the script must write the dead letter before
// it removes the timer.
func TestDeadLetterIsWrittenBeforeItsTimerIsRemoved(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	dead := "timers_dead:" + topic.Name()
	rejecting, reject := make(chan struct{}), make(chan struct{})
	sys := stacktest.Serve(t, rdb, wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
		close(rejecting)
		<-reject
		return wakebell.Reject(errors.New("bad"))
	}))
	_, err := topic.Schedule(t.Context(), sys.Client(), "body", wakebell.ID("x"))
	require.NoError(t, err)
	stacktest.Receive(t, rejecting)
	require.NoError(t, rdb.Set(t.Context(), dead, "wrong type", 0).Err())
	close(reject)
	stacktest.Eventually(t, func() bool { return sys.Counters()[topic.Name()].Errors > 1 })
	_, content, err := sys.Client().Get(t.Context(), topic.Name(), "x")
	require.NoError(t, err, "the timer must keep its payload")
	require.Equal(t, "body", string(content.Body))

	require.NoError(t, rdb.Del(t.Context(), dead).Err())
	stacktest.Eventually(t, func() bool { return stacktest.Count(t, sys.Client(), topic.Name()) == 0 })
	letters := stacktest.DeadLetters(t, sys.Client(), topic.Name())
	require.Len(t, letters, 1)
	require.Equal(t, "body", string(letters[0].Content.Body))
	require.Equal(t, "bad", letters[0].Reason)
}

// A user without rights on channels once received an error from a schedule that had
// succeeded.
func TestWithoutChannelRightsAllWorksByPolling(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "plain", "on", ">secret",
		"resetchannels", "+@all", "~*").Err())
	rdb := server.Client(t, func(o *redis.Options) { o.Username, o.Password = "plain", "secret" })
	require.ErrorContains(t, rdb.Publish(t.Context(), "timers_hint:t", "x").Err(), "NOPERM")

	topic := wakebell.NewTopic[int]("t")
	handled := make(chan int, 10)
	sys := stacktest.Serve(t, rdb, wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[int]) error {
		handled <- timer.Body
		return nil
	}, wakebell.PollingInterval(10*time.Millisecond), wakebell.MaxPollingInterval(50*time.Millisecond)))
	for i := range 10 {
		scheduled, err := sys.Client().Schedule(t.Context(), topic.Draft(i))
		require.NoError(t, err)
		require.Equal(t, wakebelltype.OutcomeCreated, scheduled[0].Outcome)
		require.Equal(t, i, stacktest.Receive(t, handled))
	}
}

// A user without rights on channels receives no hints of a pause either. After Pause has
// returned, no timer is claimed all the same, and Resume takes effect as soon.
func TestWithoutChannelRightsPauseAndResumeAreHonoured(t *testing.T) {
	t.Parallel()
	for name, rights := range map[string][]any{
		"documented rights": {"resetchannels", "+@all", "~*"},
		"no right to write the settings": {
			"resetchannels", "+@all", "~timers_timeline:*", "~timers_payloads:*", "~timers_leases:*", "~timers_hint:*", "~timers_dead:*",
			"~timers_exchange:*", "~timers_topics", "~timers_shards", "%R~timers_control:*",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			require.NoError(t, server.Client(t).Do(t.Context(), append([]any{"ACL", "SETUSER", "plain", "on", ">secret"}, rights...)...).Err())
			rdb := server.Client(t, func(o *redis.Options) { o.Username, o.Password = "plain", "secret" })
			operator := stacktest.Client(t, server.Client(t), connection.Config{})

			topic := wakebell.NewTopic[int]("t")
			handled := make(chan int, 10)
			sys := stacktest.Serve(t, rdb, wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[int]) error {
				handled <- timer.Body
				return nil
			}, wakebell.PollingInterval(10*time.Millisecond), wakebell.MaxPollingInterval(50*time.Millisecond)))
			schedule := func(body int) {
				_, err := topic.Schedule(t.Context(), operator, body)
				require.NoError(t, err)
			}
			schedule(1)
			require.Equal(t, 1, stacktest.Receive(t, handled))
			if name != "documented rights" { // its timers are delivered
				return
			}
			_, err := operator.Pause(t.Context(), topic.Name(), "ops", "")
			require.NoError(t, err)
			schedule(2)
			stacktest.Eventually(t, func() bool { return sys.Health(t.Context()).Topics[0].Paused })
			require.Empty(t, handled, "it was claimed after the pause")
			_, err = operator.Resume(t.Context(), topic.Name())
			require.NoError(t, err)
			require.Equal(t, 2, stacktest.Receive(t, handled))
		})
	}
}

// A full Redis rejects new timers. Timers that it has can still be handled, retried
// and dead-lettered.
func TestFullRedisCanBeDrained(t *testing.T) {
	t.Parallel()
	const timers = 60
	rdb := redistest.Start(t, "--maxmemory-policy", "noeviction").Client(t)
	topic := wakebell.NewTopic[int]("t")
	c := stacktest.Client(t, rdb, connection.Config{})
	for i := range timers {
		_, err := topic.Schedule(t.Context(), c, i)
		require.NoError(t, err)
	}
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err := topic.Schedule(t.Context(), c, 1, wakebell.ID("new"))
	require.ErrorIs(t, err, wakebell.ErrMemoryFull)
	_, _, err = c.Get(t.Context(), "t", "new")
	require.ErrorIs(t, err, wakebell.ErrNotFound)

	sys := stacktest.Launch(t, stacktest.Build(t, rdb, wakebell.Config{DrainTimeout: stacktest.Patience, Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[int]) error {
			switch {
			case timer.Body%3 == 0:
				return wakebell.Reject(errors.New("no"))
			case timer.Body%3 == 1 && timer.Attempt == 1:
				return wakebell.RetryIn(time.Millisecond)
			}
			return nil
		}),
	}}))
	stacktest.Eventually(t, func() bool { return stacktest.Count(t, c, "t") == 0 })
	require.NoError(t, sys.Stop())
	counters := sys.Counters()["t"]
	require.EqualValues(t, timers*2/3, counters.Acked)
	require.EqualValues(t, timers/3, counters.DeadLettered)
	require.EqualValues(t, timers/3, counters.Retried)
	require.Len(t, stacktest.DeadLetters(t, c, "t"), timers/3)

	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	_, err = topic.Schedule(t.Context(), c, 1, wakebell.ID("new"))
	require.NoError(t, err)
}

// A token is a score, and Redis may return a score with other digits than it was
// written with. A token formatted with %.6f was refused in 20 of 20 acks.
func TestTokensMatchAtInstantsWithoutExactDecimals(t *testing.T) {
	t.Parallel()
	for _, fraction := range []int{0, 1, 123, 1_000, 122_999, 123_000, 123_456, 333_333, 500_000, 678_901, 999_999} {
		stacktest.Virtually(t, func(t *testing.T) {
			// Redis's clock starts at an instant such as 1795246719.123 and advances
			// in whole seconds.
			began := time.Unix(1_795_246_719, int64(fraction)*1000)
			rdb, _ := stacktest.Skewed(t, time.Until(began))
			topic := wakebell.NewTopic[string]("t")
			sys := stacktest.Serve(t, rdb, wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
				<-time.After(25 * time.Second) // extended twice
				if timer.Attempt == 1 {
					return wakebell.RetryIn(0)
				}
				return nil
			}))
			_, err := topic.Schedule(t.Context(), sys.Client(), "x", wakebell.At(began.Add(-time.Minute/7)))
			require.NoError(t, err)
			<-time.After(2 * time.Minute)
			counters := sys.Counters()["t"]
			require.EqualValues(t, 1, counters.Acked, fraction)
			require.EqualValues(t, 1, counters.Retried, fraction)
			require.Zero(t, counters.Superseded+counters.Lost+counters.Cancelled, fraction)
		})
	}
}
