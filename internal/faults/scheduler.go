package faults

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

// topic is the topic of all scenarios. Each round has its own Redis.
const topic = "t"

// pace is what a client schedules, and how often.
type pace struct {
	batch   int           // maximum number of timers per call
	pause   time.Duration // average time between the calls of a client
	ahead   time.Duration // maximum delay of a timer
	work    func(*rand.Rand) Work
	topics  []string                  // of batches, at random; empty: the topic of all scenarios
	options []wakebell.ScheduleOption // of every timer

	replicas int // that have to confirm every timer
}

// confirmWithin is how long a schedule waits for replicas.
const confirmWithin = 200 * time.Millisecond

func usualPace() pace {
	return pace{
		batch: 24, pause: 60 * time.Millisecond, // from 16 timers on, payloads are sent beside the script
		ahead: 300 * time.Millisecond,
		work:  usualWork,
	}
}

// callLog receives the calls of a client: a DeliveryLog, or the output of a process.
type callLog interface{ RecordCall(id string, c Call) }

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

// heldWork is stubbornWork of which half takes a while, so that the next holder of a
// suspended node's timer still has it when that node continues.
func heldWork(rng *rand.Rand) Work {
	work := stubbornWork(rng)
	if rng.IntN(2) == 0 {
		work.For, work.Settle, work.Stubborn = between(rng, 100*time.Millisecond, 900*time.Millisecond), true, true
	}
	return work
}

// between returns a random duration.
func between(rng *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(rng.Int64N(int64(high-low)+1))
}

// scheduler schedules batch after batch, each until it is acknowledged.
type scheduler struct {
	pace
	calls  callLog
	name   string
	rng    *rand.Rand
	client wakebell.TimerClient
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

// plan describes a timer to schedule.
type plan struct {
	id    string
	work  Work
	in    time.Duration
	topic string // empty: the topic of all scenarios
}

func (p plan) draft(options ...wakebell.ScheduleOption) wakebell.Draft {
	return wakebell.NewTopic[Work](cmp.Or(p.topic, topic)).Draft(p.work, append(options, wakebell.ID(p.id), wakebell.In(p.in))...)
}

// schedule schedules one batch and retries until it is acknowledged. It does not
// interrupt the last attempt, so that the harness does not cause an unknown outcome.
func (s *scheduler) schedule(ctx context.Context) {
	on := topic
	if len(s.topics) > 0 {
		on = s.topics[s.rng.IntN(len(s.topics))]
	}
	plans := make([]plan, 1+s.rng.IntN(s.batch))
	for i := range plans {
		s.count++
		work := s.work(s.rng)
		work.Generation = 1
		plans[i] = plan{fmt.Sprintf("%s/%d", s.name, s.count), work, 0, on}
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
	options := s.options
	if s.replicas > 0 {
		options = append(options, wakebell.WithReplicas(s.replicas, confirmWithin))
	}
	drafts := make([]wakebell.Draft, len(plans))
	for i, p := range plans {
		drafts[i] = p.draft(options...)
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
			c.Due, c.Found, c.Replicas = answers[i].Due, found(answers[i].Outcome), s.replicas
		}
		s.calls.RecordCall(p.id, c)
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
