package actors

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/actors/reminders"
	"github.com/wakebell/wakebell/messages"
)

// remindersOn starts a runtime with reminders. It has no store; a test passes its
// calls ready-made.
func remindersOn(t *testing.T) (*actor.ActorSystem, *Runtime) {
	t.Helper()
	system := actortest.QuietSystem()
	cfg := Config{
		Name: "wakebell", Logger: actortest.DiscardLogger, Random: func() float64 { return 0.5 },
		Reminders: func(reminders.Request, *actor.PID) (reminders.Call, error) { panic("not in this test") },
	}
	rt, err := Start(system, cfg.WithProps(actor.WithContextDecorator(actortest.CrashOnDemand)))
	require.NoError(t, err)
	return system, rt
}

// taking returns a call that answers after d.
func taking(key string, d time.Duration, answer messages.Answer) reminders.Call {
	return reminders.Call{Key: key, Name: key, Do: func(ctx context.Context) messages.Answer {
		select {
		case <-time.After(d):
			return answer
		case <-ctx.Done():
			return &messages.ReminderFailed{Name: key, Error: gateway.Ended(context.Cause(ctx))}
		}
	}}
}

func asked(system *actor.ActorSystem, call reminders.Call) *actor.Future {
	return system.Root.RequestFuture(reminders.PID(system, "wakebell"), call, time.Hour)
}

// refusedCall requires that the answer is a ReminderFailed with this code.
func refusedCall(t *testing.T, code messages.Code, f *actor.Future) {
	t.Helper()
	fault, ok := answered(t, f).(*messages.ReminderFailed)
	require.True(t, ok, "no ReminderFailed")
	require.Equal(t, code.String(), fault.GetError().GetCode().String())
}

// spawnNamed spawns the actor "cart", which calls do with every reminder.
func spawnNamed(t *testing.T, system *actor.ActorSystem, do func(actor.Context, *messages.Reminder)) *actor.PID {
	t.Helper()
	pid, err := system.Root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
		if m, ok := c.Message().(*messages.Reminder); ok {
			do(c, m)
		}
	}), "cart")
	require.NoError(t, err)
	return pid
}

// given delivers a reminder, and returns its answer and how long it took.
func given(t *testing.T, system *actor.ActorSystem, pid *actor.PID) (any, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	answer, err := reminders.Remind(ctx, system, "wakebell", pid, &messages.Reminder{Name: "x"})
	if err != nil {
		return err, time.Since(began)
	}
	return answer, time.Since(began)
}

var set = &messages.SetReminderResponse{Name: "next"}

func failing() *messages.ReminderFailed {
	return &messages.ReminderFailed{Name: "next", Error: messages.Failure(messages.Code_CODE_UNAVAILABLE, "Redis is down")}
}

// TestAckWaitsForWhatActorHasSet checks that the requests that an actor sends
// before its Ack are executed before the Ack counts.
func TestAckWaitsForWhatActorHasSet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls []reminders.Call
		think time.Duration // before the Ack
		took  time.Duration
		nack  string
	}{
		"nothing":              {},
		"one":                  {calls: []reminders.Call{taking("a", 3*time.Second, set)}, took: 3 * time.Second},
		"several":              {calls: []reminders.Call{taking("a", time.Second, set), taking("b", 3*time.Second, set)}, took: 3 * time.Second},
		"one after the other":  {calls: []reminders.Call{taking("a", time.Second, set), taking("a", 3*time.Second, set)}, took: 4 * time.Second},
		"one that fails":       {calls: []reminders.Call{taking("a", time.Second, failing())}, took: time.Second, nack: `reminder "next": Redis is down`},
		"one of two that fail": {calls: []reminders.Call{taking("a", time.Second, failing()), taking("b", 2*time.Second, set)}, took: 2 * time.Second, nack: `reminder "next": Redis is down`},
		"one that has failed":  {calls: []reminders.Call{taking("a", 0, failing())}, think: time.Second, took: time.Second, nack: `reminder "next": Redis is down`},
		"one that panics": {
			calls: []reminders.Call{{Key: "a", Name: "next", Do: func(context.Context) messages.Answer { panic("on purpose") }}},
			nack:  `reminder "next": carrying out a request about a reminder panicked: on purpose`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			actortest.InVirtualTime(t, func(t *testing.T) {
				system, rt := remindersOn(t)
				pid := spawnNamed(t, system, func(c2 actor.Context, m *messages.Reminder) {
					for _, call := range c.calls {
						c2.Request(reminders.PID(system, "wakebell"), call)
					}
					<-time.After(c.think)
					c2.Respond(m.Ack())
				})
				answer, took := given(t, system, pid)
				require.Equal(t, c.took, took)
				if c.nack == "" {
					require.IsType(t, &messages.Ack{}, answer)
				} else {
					require.IsType(t, &messages.Nack{}, answer)
					require.Equal(t, c.nack, answer.(*messages.Nack).GetReason())
				}
				system.Root.Stop(pid)
				require.NoError(t, rt.Stop())
			})
		})
	}
}

func TestAnswersToReminders(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system, rt := remindersOn(t)
		answer, took := given(t, system, system.NewLocalPID("absent"))
		require.Equal(t, reminders.ErrUnreachable, answer)
		require.Zero(t, took, "an absent actor is reported at once")

		var attempts atomic.Int32
		pid := spawnNamed(t, system, func(c actor.Context, m *messages.Reminder) {
			other := &messages.Ack{Delivery: m.GetDelivery() + 1}
			switch attempts.Add(1) {
			case 1: // only an answer to another delivery
				c.Respond(other)
			case 2:
				c.Respond(other)
				c.Respond(m.Reject(nil))
				c.Respond(m.Ack())
			case 3:
				c.Respond(m.Nack(poller.ErrStopped))
			}
		})
		answer, took = given(t, system, pid)
		require.ErrorIs(t, answer.(error), context.DeadlineExceeded)
		require.Equal(t, time.Minute, took)
		answer, _ = given(t, system, pid)
		require.IsType(t, &messages.Reject{}, answer, "the first answer counts")
		answer, _ = given(t, system, pid)
		require.Equal(t, poller.ErrStopped.Error(), answer.(*messages.Nack).GetReason())
		system.Root.Stop(pid)
		require.NoError(t, rt.Stop())
	})
}

func TestCallsAboutReminderKeepTheirOrder(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system, rt := remindersOn(t)
		began := time.Now()
		var last []*actor.Future
		for n := range 5 {
			key := strconv.Itoa(n)
			asked(system, taking(key, 2*time.Second, set))
			last = append(last, asked(system, taking(key, time.Second, set)))
		}
		for _, f := range last {
			require.IsType(t, set, answered(t, f))
		}
		require.Equal(t, 3*time.Second, time.Since(began), "calls about other reminders did not wait")

		slow := asked(system, taking("slow", time.Hour, set))
		waiting := taking("slow", 0, set)
		waiting.Timeout = time.Second
		behind := asked(system, waiting)
		refusedCall(t, messages.Code_CODE_DEADLINE, slow)
		refusedCall(t, messages.Code_CODE_DEADLINE, behind)
		require.NoError(t, rt.Stop())
	})
}

func TestTooManyCallsAreRefused(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system, rt := remindersOn(t)
		var taken []*actor.Future
		for n := range gateway.MaxPrincipalRunning + gateway.MaxWaiting/2 {
			taken = append(taken, asked(system, taking(strconv.Itoa(n), time.Millisecond, set)))
		}
		refusedCall(t, messages.Code_CODE_OVERLOADED, asked(system, taking("one more", 0, set)))
		for _, f := range taken {
			require.IsType(t, set, answered(t, f))
		}
		require.NoError(t, rt.Stop())
	})
}

// TestOnePrincipalDoesNotFillReminders checks that calls of this process are
// accepted although one principal has as many calls as it can.
func TestOnePrincipalDoesNotFillReminders(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system, rt := remindersOn(t)
		pid := reminders.PID(system, "wakebell")
		var taken []*actor.Future
		mallory := func(n int) *actor.Future {
			f := actor.NewFuture(system, time.Hour)
			system.Root.Send(pid, &actor.MessageEnvelope{
				Header:  map[string]string{messages.PrincipalHeader: "mallory", messages.HostHeader: "h"},
				Message: taking(strconv.Itoa(n), time.Millisecond, set), Sender: f.PID(),
			})
			return f
		}
		for n := range gateway.MaxPrincipalRunning + gateway.MaxWaiting/2 {
			taken = append(taken, mallory(n))
		}
		refusedCall(t, messages.Code_CODE_OVERLOADED, mallory(-1))
		for _, f := range append(taken, asked(system, taking("local", 0, set))) {
			require.IsType(t, set, answered(t, f))
		}
		require.NoError(t, rt.Stop())
	})
}

// TestRemindersThatCrashOrStop checks that all requests that wait for the reminders
// actor are answered when it crashes or stops.
func TestRemindersThatCrashOrStop(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system, rt := remindersOn(t)
		pid := spawnNamed(t, system, func(actor.Context, *messages.Reminder) {})
		for round, end := range []struct {
			do  func()
			why error
		}{
			{func() { system.Root.Send(reminders.PID(system, "wakebell"), actortest.CrashNow{}) }, reminders.ErrCrashed},
			{func() { require.NoError(t, rt.Stop()) }, poller.ErrStopped},
		} {
			running, waiting := asked(system, taking("a", time.Hour, set)), asked(system, taking("a", time.Hour, set))
			answers := make(chan any, 1)
			go func() {
				answer, _ := given(t, system, pid)
				answers <- answer
			}()
			synctest.Wait()
			end.do()
			require.Equal(t, end.why, <-answers)
			refusedCall(t, messages.Code_CODE_UNAVAILABLE, running)
			refusedCall(t, messages.Code_CODE_UNAVAILABLE, waiting)
			if round == 0 {
				require.IsType(t, set, answered(t, asked(system, taking("b", 0, set))), "the actor is restarted")
			}
		}
		system.Root.Stop(pid)
	})
}
