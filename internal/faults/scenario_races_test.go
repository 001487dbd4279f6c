package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

// races schedules again, reschedules and cancels timers at about the time of their
// delivery. The answer of each call must match the deliveries.
func races(w *world) {
	w.redis()
	cfg := w.config()
	cfg.MaxConcurrent = 30
	w.start(2, cfg)
	ctx, stop := context.WithTimeout(w.Context(), 5*time.Second)
	defer stop()
	var racing sync.WaitGroup
	racers := make([]*racer, 12)
	for i := range racers {
		racers[i] = &racer{
			t: w.T, deliveries: w.deliveries, client: newClient(w.T, w.rdb),
			name: fmt.Sprintf("client-%d", i+1),
			rng:  rand.New(rand.NewPCG(w.rng.Uint64(), w.rng.Uint64())),
		}
		racing.Go(func() { racers[i].run(ctx) })
	}
	racing.Wait()
	for _, r := range racers {
		w.trials += r.trials
	}
	w.settled(settleLimit)
}

// racer makes calls about one id after another.
type racer struct {
	t          testing.TB
	deliveries *DeliveryLog
	client     *wakebell.Client
	name       string
	rng        *rand.Rand

	keyed       bool // its timers have its name as their key
	ids, trials int
	generation  int
}

func (r *racer) run(ctx context.Context) {
	for ctx.Err() == nil {
		r.ids++
		r.race(context.WithoutCancel(ctx), fmt.Sprintf("%s/%d", r.name, r.ids))
	}
}

// race makes a few calls about one id, each at about the time when its timer is due or
// handled.
func (r *racer) race(ctx context.Context, id string) {
	r.generation = 0
	in := between(r.rng, 0, 20*time.Millisecond)
	r.schedule(ctx, id, in)
	for range 1 + r.rng.IntN(4) {
		<-time.After(in + between(r.rng, -5*time.Millisecond, 25*time.Millisecond))
		r.trials++
		in = between(r.rng, 0, 20*time.Millisecond)
		switch r.rng.IntN(3) {
		case 0:
			r.schedule(ctx, id, in)
		case 1:
			r.reschedule(ctx, id, in)
		default:
			r.cancel(ctx, id)
		}
	}
}

func (r *racer) schedule(ctx context.Context, id string, in time.Duration) {
	r.generation++
	work := Work{For: between(r.rng, 0, 20*time.Millisecond), Settle: r.rng.IntN(2) == 0}
	if r.rng.IntN(10) == 0 {
		work.Fails = 1
	}
	r.plan(ctx, id, work, in)
}

// plan schedules a timer with the racer's current generation.
func (r *racer) plan(ctx context.Context, id string, work Work, in time.Duration) {
	r.generation = max(r.generation, 1)
	work.Generation = r.generation
	c := r.call(CallSchedule, in)
	var options []wakebell.ScheduleOption
	if r.keyed {
		options = append(options, wakebell.Key(KeyOf(id)))
	}
	answers, err := r.client.Schedule(ctx, plan{id: id, work: work, in: in}.draft(options...))
	c.Returned = time.Now()
	require.NoError(r.t, err)
	c.Due, c.Found = answers[0].Due, found(answers[0].Outcome)
	r.deliveries.RecordCall(id, c)
}

// reschedule keeps the body, and with it the generation that a handler prints. The
// judge uses the instant instead.
func (r *racer) reschedule(ctx context.Context, id string, in time.Duration) {
	c := r.call(CallReschedule, in)
	answer, err := r.client.Reschedule(ctx, topic, id, wakebell.In(in))
	c.Returned = time.Now()
	if errors.Is(err, wakebell.ErrNotFound) {
		c.Generation, c.Found, c.Err = r.generation+1, FoundNothing, err
		r.deliveries.RecordCall(id, c)
		return
	}
	require.NoError(r.t, err)
	r.generation++
	c.Generation = r.generation
	c.Due, c.Found = answer.Due, found(answer.Outcome)
	r.deliveries.RecordCall(id, c)
}

func (r *racer) cancel(ctx context.Context, id string) {
	c := r.call(CallCancel, 0)
	presences, err := r.client.Cancel(ctx, topic, id)
	c.Returned = time.Now()
	require.NoError(r.t, err)
	c.Found = map[wakebelltype.Presence]Found{
		wakebelltype.PresenceAbsent: FoundNothing, wakebelltype.PresencePending: FoundPending, wakebelltype.PresenceRunning: FoundRunning,
	}[presences[0]]
	r.deliveries.RecordCall(id, c)
}

func (r *racer) call(kind CallKind, in time.Duration) Call {
	now := time.Now()
	return Call{Kind: kind, Client: r.name, Generation: r.generation, Called: now, Earliest: now.Add(in)}
}
