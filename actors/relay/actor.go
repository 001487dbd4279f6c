package relay

import (
	"context"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/messages"
)

const (
	// firstRetry and maxRetry bound the backoff while the database or Redis is
	// unavailable.
	firstRetry = 100 * time.Millisecond
	maxRetry   = 5 * time.Second

	// blockedRetry is the pause after a batch without progress: another relay holds
	// rows of the same streams.
	blockedRetry = 50 * time.Millisecond
)

// relay is the actor. Its Receive never blocks: calls of the store run in goroutines,
// one at a time, and the gateway answers by message.
type relay struct {
	*loop
	first       bool // of the relay's actors: it listens and measures as well
	log         *slog.Logger
	incarnation uint64 // messages of earlier incarnations are dropped

	self   *actor.PID
	root   *actor.RootContext
	ctx    context.Context // of this incarnation
	cancel context.CancelFunc

	busy     bool     // a batch is being claimed, sent or settled
	hinted   bool     // rows were written since the claim
	batch    *sending // nil unless one is being sent
	batches  uint64   // claimed by this incarnation
	requests uint64   // sent by this incarnation
	timer    *time.Timer
	failures int           // consecutive batches that failed
	pause    time.Duration // before the next claim while rows wait
}

type (
	wake     struct{}
	claimDue struct{ incarnation uint64 }
	claimed  struct {
		incarnation uint64
		batch       *sending
		err         error
	}
	sendTimeout struct{ incarnation, batch uint64 }
	settled     struct {
		incarnation uint64
		batch       *sending
		err         error
	}
)

// Receive implements actor.Actor.
func (r *relay) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		r.start(c)
	case *actor.Stopping, *actor.Restarting:
		r.stop()
	case wake:
		r.hinted = true
		r.claim()
	case claimDue:
		if m.incarnation == r.incarnation {
			r.claim()
		}
	case claimed:
		if m.incarnation == r.incarnation {
			r.claimed(m)
		}
	case messages.Answer:
		r.answered(m)
	case *actor.DeadLetterResponse:
		r.noGateway()
	case sendTimeout:
		if m.incarnation == r.incarnation && r.batch != nil && r.batch.number == m.batch {
			r.settle()
		}
	case settled:
		if m.incarnation == r.incarnation {
			r.settled(m)
		}
	}
}

func (r *relay) start(c actor.Context) {
	r.self, r.root = c.Self(), c.ActorSystem().Root
	//nolint:forbidigo // the context lasts as long as the incarnation, which
	// stop ends
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if r.first {
		r.listen()
		r.measure()
	}
	r.claim()
}

// stop ends what the incarnation has begun. The rows of its batch are free again.
func (r *relay) stop() {
	if r.cancel != nil {
		r.cancel()
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.batch != nil {
		r.batch.cancel()
	}
}

func (r *relay) listen() {
	if r.cfg.Listen == nil {
		return
	}
	ctx, log := r.ctx, r.log
	tell := r.tell()
	deliver := func() { tell(wake{}) }
	r.env.IO.Go(func() {
		for failures := 0; ctx.Err() == nil; failures++ {
			began := time.Now()
			_, err := host.Recovered("listening for rows", func() (struct{}, error) {
				return struct{}{}, r.cfg.Listen(ctx, deliver)
			})
			if ctx.Err() != nil {
				return
			}
			if time.Since(began) > host.ResubscribeDelay {
				failures = 0
			}
			if failures == 0 {
				log.Warn("the database does not notify; new rows are found by polling", "err", err, "duration", r.cfg.PollInterval)
			}
			pause(ctx, backoff.Exponential(time.Second, failures, host.ResubscribeDelay))
		}
	})
}

func (r *relay) measure() {
	if r.cfg.Measure == nil {
		return
	}
	ctx := r.ctx
	r.env.IO.Go(func() {
		for ctx.Err() == nil {
			within, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
			_, _ = host.Recovered("measuring", func() (struct{}, error) { return struct{}{}, r.cfg.Measure(within) })
			cancel()
			pause(ctx, r.cfg.MeasureInterval)
		}
	})
}

// claim starts a claim, unless a batch is in progress.
func (r *relay) claim() {
	if r.busy || r.ctx.Err() != nil {
		return
	}
	if r.draining.Load() {
		r.once.Do(func() { close(r.drained) })
		return
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	r.busy, r.hinted, r.pause = true, false, 0
	r.batches++
	// The batch may take three times the timeout: to be claimed, sent and settled.
	ctx, cancel := context.WithTimeout(r.ctx, 3*r.cfg.Timeout)
	tell, incarnation, number := r.tell(), r.incarnation, r.batches
	r.env.IO.Go(func() {
		batch, err := host.Recovered("claiming rows", func() (Batch, error) { return r.store.Claim(ctx) })
		if err != nil {
			cancel()
			tell(claimed{incarnation: incarnation, err: err})
			return
		}
		tell(claimed{incarnation: incarnation, batch: newSending(ctx, cancel, number, batch)})
	})
}

func (r *relay) claimed(m claimed) {
	if m.err != nil {
		r.end(false, m.err)
		return
	}
	r.batch = m.batch
	if len(r.batch.items) == 0 {
		r.settle()
		return
	}
	tell, due := r.tell(), sendTimeout{r.incarnation, r.batch.number}
	r.batch.deadline = time.Now().Add(r.cfg.Timeout)
	r.batch.timer = time.AfterFunc(r.cfg.Timeout+answerGrace, func() { tell(due) })
	r.send()
}

// awaitRest shortens the wait for answers to a batch of which rows were relayed: Redis
// works, so what has no answer concerns its own lanes. Later answers are ignored; the
// idempotency keys make the requests ineffective once their rows are sent again.
func (r *relay) awaitRest() {
	if b := r.batch; b != nil && b.anyRelayed {
		b.timer.Reset(min(restWait, time.Until(b.deadline)+answerGrace))
	}
}

// send sends the requests that may be sent now, and settles the batch when no more
// is in flight.
func (r *relay) send() {
	b := r.batch
	for len(b.inFlight) < maxInFlight {
		i, ok := b.next()
		if !ok {
			break
		}
		r.requests++
		number := r.incarnation<<40 | r.requests
		b.inFlight[number] = i
		r.root.RequestWithCustomSender(r.cfg.Gateway, addressed(b.items[i].Request, number, time.Until(b.deadline)), r.self)
	}
	if len(b.inFlight) == 0 {
		r.settle()
	}
}

func (r *relay) answered(a messages.Answer) {
	if r.batch == nil {
		return
	}
	i, ok := r.batch.inFlight[a.GetRequest()]
	if !ok {
		return // an answer to an earlier batch
	}
	delete(r.batch.inFlight, a.GetRequest())
	r.batch.record(i, a)
	r.send()
	r.awaitRest()
}

// noGateway ends a batch whose requests were not delivered: the System is not
// running.
func (r *relay) noGateway() {
	if r.batch != nil {
		r.batch.outage = errNoGateway
		clear(r.batch.inFlight)
		r.settle()
	}
}

func (r *relay) settle() {
	b := r.batch
	r.batch = nil
	b.finish()
	tell, incarnation := r.tell(), r.incarnation
	r.env.IO.Go(func() {
		_, err := host.Recovered("settling rows", func() (struct{}, error) { return struct{}{}, b.Settle(b.ctx, b.results) })
		b.cancel()
		tell(settled{incarnation, b, err})
	})
}

func (r *relay) settled(m settled) {
	if m.err != nil {
		r.end(false, m.err)
		return
	}
	counts := m.batch.counts()
	r.relayed.Add(counts.Relayed)
	r.deferred.Add(counts.Deferred)
	r.rejected.Add(counts.Rejected)
	m.batch.log(r.log, r.env.LogLimit)
	progress := counts != Counts{}
	if m.batch.Contended() && !progress && m.batch.outage == nil {
		r.pause = blockedRetry
	}
	r.end(m.batch.More(), m.batch.outage)
}

// end ends a batch and schedules the next claim.
func (r *relay) end(more bool, err error) {
	r.busy = false
	r.setErr(err)
	switch {
	case r.draining.Load():
		r.claim()
	case err != nil:
		r.schedule(r.failed(err))
	case more || r.hinted:
		r.recovered()
		r.schedule(r.pause)
	default:
		r.recovered()
		r.schedule(backoff.Jitter(r.cfg.PollInterval, 0.1, r.env.Random()))
	}
}

func (r *relay) schedule(wait time.Duration) {
	if r.timer != nil {
		r.timer.Stop()
	}
	tell, due := r.tell(), claimDue{r.incarnation}
	r.timer = time.AfterFunc(wait, func() { tell(due) })
}

// tell returns the function by which goroutines send to the actor while this
// incarnation lasts.
func (r *relay) tell() func(message any) {
	ctx, root, self := r.ctx, r.root, r.self
	return func(message any) {
		if ctx.Err() == nil {
			root.Send(self, message)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (r *relay) recovered() {
	if r.failures > 0 {
		r.log.Info("the outbox is relayed again")
		r.failures = 0
	}
}

// failed returns the delay until the next claim, and logs the first failure of
// several.
func (r *relay) failed(err error) time.Duration {
	if r.failures == 0 {
		r.log.Error("the outbox cannot be relayed; retrying", "err", err)
	}
	delay := backoff.Jitter(backoff.Exponential(firstRetry, r.failures, maxRetry), 0.2, r.env.Random())
	r.failures++
	return delay
}
