package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/opened"
)

const (
	steadyFor     = 6 * time.Second       // due instants of a run
	steadyLead    = 3 * time.Second       // from the end of loading to the first due instant
	steadyLook    = 50 * time.Millisecond // to look more often would cost as much as the timers
	warmUp        = 3 * time.Second       // in which many topics that begin at once catch up
	lifeCallers   = 50
	lifeAhead     = 300 * time.Millisecond
	lifePerSecond = 2000
)

// bothUS is the CPU time of client and Redis per timer.
const bothUS = "both_us"

// steady is a load of timers that come due one after the other, on one topic or on many,
// handled by one node.
type steady struct {
	topics int
	rate   float64 // timers per second of each topic
	random bool    // at random instants; otherwise evenly spread
	bytes  int     // of a body
	window time.Duration
	use    used

	// warm is for how long timers come due before the measured ones. Of 1,000 topics that
	// begin at once, each has a first exchange within a few milliseconds.
	warm time.Duration
}

// automatic is the default delivery window.
const automatic time.Duration = -1

// run loads the timers, starts a node, and measures from before the first due instant, or
// from the end of the warm-up, until the last ack.
func (l steady) run(ctx context.Context, w *world) (_ sample, err error) {
	rdb := w.client(0)
	defer func() { _ = rdb.Close() }()
	var handled atomic.Int64
	var measured time.Time // the instants from which lateness counts; set before the start
	late, atStart := make(chan float64, 1<<20), make(chan float64, 1<<20)
	handlers := make([]wakebell.Handler, l.topics)
	topics := make([]wakebell.Topic[[]byte], l.topics)
	for i := range handlers {
		topics[i] = wakebell.NewTopic[[]byte](fmt.Sprintf("steady-%d", i))
		options := []wakebell.HandlerOption{wakebell.MaxConcurrent(100)}
		if l.window != automatic {
			options = append(options, wakebell.DeliveryWindow(l.window))
		}
		handlers[i] = wakebell.Handle(topics[i], func(_ context.Context, t wakebell.Timer[[]byte]) error {
			ms := time.Since(t.Activation).Seconds() * 1e3
			if t.Activation.Before(measured) {
				atStart <- ms
			} else {
				late <- ms
			}
			handled.Add(1)
			return nil
		}, options...)
	}
	sys, err := l.use.system(rdb, handlers...)
	if err != nil {
		return nil, err
	}
	n, first, err := l.load(ctx, w, sys.Client(), topics)
	if err != nil {
		return nil, err
	}
	measured = first.Add(l.warm)
	if err := sys.Start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sys.Stop()) }()
	pause := steadyLead / 2
	if l.warm > 0 {
		pause = time.Until(measured)
	}
	if err := wait(ctx, pause); err != nil {
		return nil, err
	}
	before, acked := exchangesOf(sys), int(ackedBy(sys))
	s, err := w.measure(ctx, n-acked, func() error {
		return untilEvery(ctx, steadyLook, func() bool { return handled.Load() >= int64(n) && ackedBy(sys) >= int64(n) })
	})
	if err != nil {
		return nil, err
	}
	for name, value := range latenessOf(late) {
		s[name] = value
	}
	if l.warm > 0 {
		s[lateStartP99] = latenessOf(atStart)[lateP99]
	}
	s[exchangesPer] = float64(exchangesOf(sys)-before) / float64(n-acked)
	s[bothUS] = s[clientUS] + s[redisUS]
	return s, nil
}

// load schedules the timers, and returns steadyLead before the first is due, at the given
// instant.
func (l steady) load(ctx context.Context, w *world, client *wakebell.Client, topics []wakebell.Topic[[]byte]) (n int, first time.Time, err error) {
	random := rand.New(rand.NewPCG(1, 2))
	long := (l.warm + w.long(steadyFor)).Seconds()
	total := int(l.rate * long * float64(l.topics))
	first = time.Now().Add(steadyLead + time.Duration(float64(total)/30_000*float64(time.Second)))
	body := bytes.Repeat([]byte("x"), l.bytes)
	for _, topic := range topics {
		var drafts []wakebell.Draft
		for i := 0; ; i++ {
			at := (float64(i) + 1) / l.rate
			if l.random {
				at = random.Float64() * long
			}
			if float64(i) >= l.rate*long {
				break
			}
			drafts = append(drafts, topic.Draft(body, wakebell.At(first.Add(seconds(at)))))
		}
		if _, err := client.Schedule(ctx, drafts...); err != nil {
			return 0, first, err
		}
		n += len(drafts)
	}
	return n, first, wait(ctx, time.Until(first)-steadyLead)
}

func ackedBy(sys *wakebell.System) (total int64) {
	for _, c := range sys.Counters() {
		total += c.Acked
	}
	return total
}

// life measures timers from their schedule, by one of many callers, to their ack, at a
// steady rate. The callers wait for others for as long as window says; negative: not at
// all.
func life(perSecond int, window time.Duration) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		n := int(w.long(steadyFor).Seconds()) * perSecond
		body := make([]byte, 100)
		return lives(ctx, w, "life", n, 100, window, func(c *wakebell.Client, topic wakebell.Topic[[]byte]) error {
			return paced(ctx, n, perSecond, func() error {
				_, err := topic.Schedule(ctx, c, body, wakebell.In(lifeAhead))
				return err
			})
		})
	}
}

// lives has a node handle n timers that are scheduled meanwhile.
func lives(ctx context.Context, w *world, name string, n, maxConcurrent int, window time.Duration, schedule func(*wakebell.Client, wakebell.Topic[[]byte]) error) (_ sample, err error) {
	rdb := w.client(0)
	defer func() { _ = rdb.Close() }()
	topic := wakebell.NewTopic[[]byte](name)
	late := make(chan float64, n+n/10) // some may be delivered again
	handle := wakebell.Handle(topic, func(_ context.Context, t wakebell.Timer[[]byte]) error {
		late <- time.Since(t.Activation).Seconds() * 1e3
		return nil
	}, wakebell.MaxConcurrent(maxConcurrent))
	sys, err := used{switches: opened.Switches{ScheduleWindow: window}}.system(rdb, handle)
	if err != nil {
		return nil, err
	}
	if err := sys.Start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sys.Stop()) }()
	if err := wait(ctx, time.Second); err != nil {
		return nil, err
	}
	s, err := w.measure(ctx, n, func() error {
		return errors.Join(schedule(sys.Client(), topic), untilEvery(ctx, steadyLook, func() bool { return ackedBy(sys) >= int64(n) }))
	})
	if err != nil {
		return nil, err
	}
	for name, value := range latenessOf(late) {
		s[name] = value
	}
	s[bothUS] = s[clientUS] + s[redisUS]
	return s, nil
}

// callers measures what the callers of life cost by themselves: each is woken by a timer
// for each call.
func callers(perSecond int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		n := int(w.long(steadyFor).Seconds()) * perSecond
		s, err := w.measure(ctx, n, func() error { return paced(ctx, n, perSecond, func() error { return nil }) })
		if err != nil {
			return nil, err
		}
		s[bothUS] = s[clientUS] + s[redisUS]
		return s, nil
	}
}

// paced has lifeCallers callers make n calls at a steady rate together.
func paced(ctx context.Context, n, perSecond int, call func() error) error {
	errs := make([]error, lifeCallers)
	pause := time.Duration(lifeCallers) * time.Second / time.Duration(perSecond)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			next := time.Now().Add(pause * time.Duration(i) / lifeCallers)
			for range n / lifeCallers {
				if errs[i] = wait(ctx, time.Until(next)); errs[i] == nil {
					errs[i] = call()
				}
				if errs[i] != nil {
					return
				}
				next = next.Add(pause)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// steadyAsynq has asynq handle tasks that are planned for instants evenly spread. Every
// check it looks for due ones; 0: its default of 5 s.
func steadyAsynq(perSecond int, check time.Duration) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		n := int(w.long(steadyFor).Seconds()) * perSecond
		start := time.Now().Add(steadyLead + time.Duration(n/15_000)*time.Second)
		if err := plan(ctx, w, n, perSecond, start); err != nil {
			return nil, err
		}
		rdb := redis.NewClient(&redis.Options{Addr: w.server.Addr})
		defer func() { _ = rdb.Close() }()
		server := asynq.NewServerFromRedisClient(rdb, asynq.Config{
			LogLevel: asynq.FatalLevel, ShutdownTimeout: time.Second, DelayedTaskCheckInterval: check,
		})
		var handled atomic.Int64
		work := asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
			handled.Add(1)
			return nil
		})
		if err := wait(ctx, time.Until(start)-time.Second); err != nil {
			return nil, err
		}
		s, err := w.measure(ctx, n, func() error {
			if err := server.Start(work); err != nil {
				return err
			}
			return untilEvery(ctx, steadyLook, func() bool { return handled.Load() >= int64(n) })
		})
		server.Shutdown()
		if err == nil {
			s[bothUS] = s[clientUS] + s[redisUS]
		}
		return s, err
	}
}

// plan has 50 callers plan n tasks of 100 bytes for instants from start on.
func plan(ctx context.Context, w *world, n, perSecond int, start time.Time) error {
	loader := w.client(50)
	defer func() { _ = loader.Close() }()
	client := asynq.NewClientFromRedisClient(loader)
	body := make([]byte, 100)
	return calls(n, 50, func(i int) error {
		at := start.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
		_, err := client.EnqueueContext(ctx, asynq.NewTask("bench", body), asynq.ProcessAt(at))
		return err
	})
}
