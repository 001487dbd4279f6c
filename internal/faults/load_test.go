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
)

// load says what the schedulers of a round do.
type load struct {
	clients int
	batch   int           // most timers in a call
	pause   time.Duration // about, between the calls of a client
	ahead   time.Duration // most that a timer is due in the future
	work    func(*rand.Rand) Work

	// connect gives the connection of a client, whose name faults bear.
	connect func(name string) redis.UniversalClient
	timers  func(name string) wakebell.Timers // in its place, where Redis is out of reach
	options []wakebell.ScheduleOption         // of every timer
}

// usual is the load of most scenarios: short work, now and then a failure, a
// panic or a settlement by the handler itself.
func (w *world) usual() load {
	return load{
		clients: 3, batch: 24, pause: 60 * time.Millisecond, // from 16 on payloads travel apart
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
	case 3, 4, 5: // so that it is held when something strikes
		work.For = between(rng, 50*time.Millisecond, 500*time.Millisecond)
	case 6: // extended until it is longer than a lease
		work.For = between(rng, 1100*time.Millisecond, 1500*time.Millisecond)
	}
	return work
}

// longWork is held for a while more often than not.
func longWork(rng *rand.Rand) Work {
	work := usualWork(rng)
	if rng.IntN(3) == 0 {
		work.For = between(rng, 20*time.Millisecond, 700*time.Millisecond)
	}
	return work
}

// stubbornWork goes on when its lease is lost, and succeeds, more often than not.
func stubbornWork(rng *rand.Rand) Work {
	work := longWork(rng)
	work.Stubborn = rng.IntN(4) > 0
	return work
}

// begin starts the schedulers; the function that it returns ends them.
func (w *world) begin(l load) (end func()) {
	w.Helper()
	ctx, stop := context.WithCancel(w.Context())
	var running sync.WaitGroup
	for i := range l.clients {
		s := &scheduler{
			load: l, t: w.T, ledger: w.ledger,
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

// quiet is for what is in trouble on purpose.
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
	t      testing.TB
	ledger *Ledger
	name   string
	rng    *rand.Rand
	client wakebell.Timers
	count  int
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

// plan is a timer that is to be.
type plan struct {
	id   string
	work Work
	in   time.Duration
}

func (p plan) draft(options ...wakebell.ScheduleOption) wakebell.Draft {
	return wakebell.NewTopic[Work](topic).Draft(p.work, append(options, wakebell.ID(p.id), wakebell.In(p.in))...)
}

// schedule schedules one batch, again and again until it is acknowledged; the
// last try is made to its end, so that no outcome is left unknown by the
// harness itself.
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

// try schedules a batch once and notes what came of it.
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
		s.ledger.Called(p.id, c)
	}
	return err == nil
}

func found(o wakebell.Outcome) Found {
	switch o {
	case wakebell.Created, wakebell.AlreadyDone:
		return FoundNothing
	case wakebell.Superseded, wakebell.KeptRunning:
		return FoundRunning
	default:
		return FoundPending
	}
}
