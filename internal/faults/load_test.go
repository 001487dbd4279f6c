package faults

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

// load configures the schedulers of a round.
type load struct {
	clients int
	batch   int           // maximum number of timers per call
	pause   time.Duration // average time between the calls of a client
	ahead   time.Duration // maximum delay of a timer
	work    func(*rand.Rand) Work

	// connect returns the connection of a client. Faults are recorded by its name.
	connect func(name string) redis.UniversalClient
	timers  func(name string) wakebell.TimerClient // in place of connect, for clients without Redis
	options []wakebell.ScheduleOption              // of every timer
}

// usual is the load of most scenarios: short work, and sometimes a failure, a panic
// or a settlement by the handler itself.
func (w *world) usual() load {
	return load{
		clients: 3, batch: 24, pause: 60 * time.Millisecond, // from 16 timers on, payloads are sent beside the script
		ahead:   300 * time.Millisecond,
		work:    usualWork,
		connect: func(string) redis.UniversalClient { return w.rdb },
	}
}

func usualWork(rng *rand.Rand) Work {
	work := Work{For: between(rng, 0, 20*time.Millisecond), Settle: rng.IntN(3) == 0}
	switch rng.IntN(50) {
	case 0:
		work.Panics = 1
	case 1, 2:
		work.Fails = 1
	case 3, 4, 5: // held for a while, so that faults hit it
		work.For = between(rng, 50*time.Millisecond, 500*time.Millisecond)
	case 6: // longer than a lease, so that it is extended
		work.For = between(rng, 1100*time.Millisecond, 1500*time.Millisecond)
	}
	return work
}

// longWork is usualWork that is held for a while more often.
func longWork(rng *rand.Rand) Work {
	work := usualWork(rng)
	if rng.IntN(3) == 0 {
		work.For = between(rng, 20*time.Millisecond, 700*time.Millisecond)
	}
	return work
}

// stubbornWork is longWork that, in three of four cases, continues when its lease is
// lost.
func stubbornWork(rng *rand.Rand) Work {
	work := longWork(rng)
	work.Stubborn = rng.IntN(4) > 0
	return work
}

// begin starts the schedulers. end stops them.
func (w *world) begin(l load) (end func()) {
	w.Helper()
	ctx, stop := context.WithCancel(w.Context())
	var running sync.WaitGroup
	for i := range l.clients {
		s := &scheduler{
			load: l, t: w.T, deliveries: w.deliveries,
			name: fmt.Sprintf("client-%d", i+1),
			rng:  rand.New(rand.NewPCG(w.rng.Uint64(), w.rng.Uint64())),
		}
		if l.timers != nil {
			s.client = l.timers(s.name)
		} else {
			s.client = newClient(w.T, l.connect(s.name))
		}
		running.Go(func() { s.run(ctx) })
	}
	var once sync.Once
	end = func() { once.Do(func() { stop(); running.Wait() }) }
	w.Cleanup(end)
	return end
}

// quiet discards the log of components that fail on purpose.
var quiet = slog.New(slog.DiscardHandler)

func newClient(t testing.TB, rdb redis.UniversalClient) *wakebell.Client {
	t.Helper()
	c, err := wakebell.NewClient(rdb, wakebell.ClientConfig{Logger: quiet})
	require.NoError(t, err)
	return c
}

// scheduler schedules batch after batch, each until it is acknowledged.
type scheduler struct {
	load
	t          testing.TB
	deliveries *DeliveryLog
	name       string
	rng        *rand.Rand
	client     wakebell.TimerClient
	count      int
}

func (s *scheduler) run(ctx context.Context) {
	for ctx.Err() == nil {
		s.schedule(ctx)
		select {
		case <-time.After(between(s.rng, s.pause/2, 3*s.pause/2)):
		case <-ctx.Done():
		}
	}
}

// plan describes a timer to schedule.
type plan struct {
	id   string
	work Work
	in   time.Duration
}

func (p plan) draft(options ...wakebell.ScheduleOption) wakebell.Draft {
	return wakebell.NewTopic[Work](topic).Draft(p.work, append(options, wakebell.ID(p.id), wakebell.In(p.in))...)
}

// schedule schedules one batch and retries until it is acknowledged. It does not
// interrupt the last attempt, so that the harness does not cause an unknown outcome.
func (s *scheduler) schedule(ctx context.Context) {
	plans := make([]plan, 1+s.rng.IntN(s.batch))
	for i := range plans {
		s.count++
		work := s.work(s.rng)
		work.Generation = 1
		plans[i] = plan{fmt.Sprintf("%s/%d", s.name, s.count), work, 0}
		if s.ahead > 0 && s.rng.IntN(2) == 0 {
			plans[i].in = between(s.rng, 0, s.ahead)
		}
	}
	for {
		if s.try(context.WithoutCancel(ctx), plans) {
			return
		}
		select {
		case <-time.After(between(s.rng, 10*time.Millisecond, 50*time.Millisecond)):
		case <-ctx.Done():
			return // never acknowledged
		}
	}
}

// try schedules a batch once and records the answer.
func (s *scheduler) try(ctx context.Context, plans []plan) bool {
	drafts := make([]wakebell.Draft, len(plans))
	for i, p := range plans {
		drafts[i] = p.draft(s.options...)
	}
	called := time.Now()
	answers, err := s.client.Schedule(ctx, drafts...)
	returned := time.Now()
	for i, p := range plans {
		c := Call{
			Kind: CallSchedule, Client: s.name, Generation: p.work.Generation,
			Called: called, Returned: returned, Earliest: called.Add(p.in), Err: err,
		}
		if err == nil {
			c.Due, c.Found = answers[i].Due, found(answers[i].Outcome)
		}
		s.deliveries.RecordCall(p.id, c)
	}
	return err == nil
}

func found(o wakebelltype.Outcome) Found {
	switch o {
	case wakebelltype.OutcomeCreated, wakebelltype.OutcomeAlreadyDone:
		return FoundNothing
	case wakebelltype.OutcomeSuperseded, wakebelltype.OutcomeKeptRunning:
		return FoundRunning
	default:
		return FoundPending
	}
}
