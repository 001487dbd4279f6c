package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// consumersLoss and publishersLoss are the shares of all commands that are lost.
	consumersLoss  = 0.05
	publishersLoss = 0.2
	publishers     = 4
)

// queued is the queue of the scenario. Bodies contain their deduplication keys, which
// identify the message of a command, a run and a dead letter.
var queued = queue.New[Work](topic, queue.DeduplicateBy(func(w Work) string { return w.Key }))

// queues kills and suspends the consumers of a queue, while links of consumers and
// publishers lose requests and replies, and handlers settle in every way.
func queues(w *world) {
	w.redis()
	cfg := w.config()
	// Deadlines of a queue are rounded to ms; the lease must not be shorter than that
	// of the delivery log.
	cfg.Queue, cfg.MaxConcurrent, cfg.LeaseTTL = true, 60, w.deliveries.TTL+time.Millisecond
	deadLetters := map[string][]string{}
	defer func() { w.found = w.deliveries.JudgeMessages(deadLetters) }()
	for range 4 {
		w.nodes = append(w.nodes, w.lossyNode(cfg, consumersLoss))
	}
	end := w.publish()
	for range 2 {
		w.hit(cfg, consumersLoss)
	}
	end()
	w.handled(settleLimit)
	w.drainAll()
	w.readDeadLetters(deadLetters)
	w.emptyQueue(deadLetters)
	report.Note("queue", "%d settlements refused because the handler no longer held the message", w.refused())
}

// refused counts the refused settlements.
func (w *world) refused() (n int) {
	for _, t := range w.deliveries.timers {
		for _, r := range t.Runs {
			if r.Result == ResultRefused {
				n++
			}
		}
	}
	return n
}

// lossyNode starts a node whose link loses that share of all commands.
func (w *world) lossyNode(cfg NodeConfig, rate float64) *Node {
	w.Helper()
	cfg.Redis = w.link(w.fleet.Next(), rate, loss)
	return w.fleet.Start(cfg)
}

// hit suspends a node for longer than a lease, and kills other nodes meanwhile. When it
// continues, it has timers or messages that other nodes have claimed.
func (w *world) hit(cfg NodeConfig, rate float64) {
	w.Helper()
	frozen := w.rng.IntN(len(w.nodes))
	w.nodes[frozen].Ready()
	w.pause(between(w.rng, 200*time.Millisecond, 400*time.Millisecond))
	resume := w.nodes[frozen].Stop()
	w.tried()
	for until := time.Now().Add(between(w.rng, w.deliveries.TTL*11/10, w.deliveries.TTL*3/2)); time.Now().Before(until); {
		i := (frozen + 1 + w.rng.IntN(len(w.nodes)-1)) % len(w.nodes)
		w.nodes[i].Kill()
		w.nodes[i] = w.lossyNode(cfg, rate)
		w.tried()
		w.pause(between(w.rng, 50*time.Millisecond, 250*time.Millisecond))
	}
	resume()
}

// handled waits until no message is waiting or held.
func (w *world) handled(within time.Duration) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), within)
	defer cancel()
	left, err := queue.Drain(ctx, newClient(w.T, w.rdb).Queues(), queued.Keys())
	require.NoError(w, err, "left: %+v", left)
}

func (w *world) readDeadLetters(into map[string][]string) {
	w.Helper()
	for letter, err := range newClient(w.T, w.rdb).Queues().DeadLetters(w.Context(), queued.Keys(), wakebelltype.Page{}) {
		require.NoError(w, err)
		var work Work
		require.NoError(w, json.Unmarshal(letter.Payload, &work))
		into[work.Key] = append(into[work.Key], letter.ID)
		w.deliveries.RecordDeadLetter(work.Key, letter.Reason)
	}
}

// remaining has the prefixes of keys that outlast the messages.
var remaining = []string{
	"::deduplication::", "::dlq", "::processing:lease_token_counter",
	"::wakebell:records", "::wakebell:places", "::wakebell:published:", "::wakebell:exchange:", "::wakebell:hint", "::wakebell:counts", "::wakebell:history",
}

// emptyQueue checks that Redis has nothing of the messages except the dead letters
// with a record of each, and keys that expire.
func (w *world) emptyQueue(deadLetters map[string][]string) {
	w.Helper()
	keys, err := w.rdb.Keys(w.Context(), "*").Result()
	require.NoError(w, err)
	expected := func(key string) bool {
		for _, begin := range remaining {
			if strings.HasPrefix(key, topic+begin) {
				return true
			}
		}
		return false
	}
	for _, key := range keys {
		if strings.HasPrefix(key, topic+"::") && !expected(key) {
			w.Errorf("%q is left", key)
		}
	}
	require.EqualValues(w, len(deadLetters), w.rdb.ZCard(w.Context(), topic+"::wakebell:places").Val(), "positions of dead letters")
	require.EqualValues(w, len(deadLetters)+1, w.rdb.HLen(w.Context(), topic+"::wakebell:records").Val(), "records of dead letters, and the state")
}

// publish starts the publishers. end stops them and adds their counts to the report.
func (w *world) publish() (end func()) {
	w.Helper()
	ctx, stop := context.WithCancel(w.Context())
	var running sync.WaitGroup
	shared := &published{}
	for i := range publishers {
		name := fmt.Sprintf("client-%d", i+1)
		rdb := w.server.Client(w.T, patient, func(o *redis.Options) { o.Addr = w.link(name, publishersLoss, loss) })
		p := &publisher{
			published: shared, deliveries: w.deliveries, name: name, client: newClient(w.T, rdb),
			rng: rand.New(rand.NewPCG(w.rng.Uint64(), w.rng.Uint64())),
		}
		running.Go(func() { p.run(ctx) })
	}
	var once sync.Once
	end = func() {
		once.Do(func() {
			stop()
			running.Wait()
			report.Note("queue", "%d publishes, %d answered as duplicates, %d without an answer",
				shared.calls.Load(), shared.duplicates.Load(), shared.unanswered.Load())
		})
	}
	w.Cleanup(end)
	return end
}

// published is shared by all publishers: recent messages, which any of them may
// publish again, and counts of answers.
type published struct {
	mu     sync.Mutex
	recent []Work

	calls, duplicates, unanswered atomic.Int64
}

// publisher publishes small batches, and retries until they are acknowledged.
type publisher struct {
	*published
	deliveries *DeliveryLog
	name       string
	rng        *rand.Rand
	client     *wakebell.Client

	count, drafted int
}

func (p *publisher) run(ctx context.Context) {
	for ctx.Err() == nil {
		p.publish(ctx)
		select {
		case <-time.After(between(p.rng, 15*time.Millisecond, 45*time.Millisecond)):
		case <-ctx.Done():
		}
	}
}

// draw returns a new message, or a recent one of any publisher.
func (p *publisher) draw() Work {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.recent) > 0 && p.rng.IntN(6) == 0 {
		return p.recent[p.rng.IntN(len(p.recent))]
	}
	p.count++
	work := messageWork(p.rng)
	work.Key, work.Generation = fmt.Sprintf("%s/%d", p.name, p.count), 1
	p.recent = append(p.recent[max(0, len(p.recent)-50):], work)
	return work
}

// messageWork is heldWork that ends in all ways.
func messageWork(rng *rand.Rand) Work {
	work := heldWork(rng)
	switch rng.IntN(10) {
	case 0:
		work.Fails = 1 + rng.IntN(3)
	case 1:
		work.Reject = true
	case 2:
		work.Panics = 1
	}
	return work
}

// publish publishes one batch and retries until it is acknowledged, with the same
// drafts or with new ones of the same keys.
func (p *publisher) publish(ctx context.Context) {
	works := []Work{p.draw()}
	if p.rng.IntN(2) == 0 {
		for range 1 + p.rng.IntN(7) {
			works = append(works, p.draw())
		}
	}
	drafts := p.draft(works)
	for !p.try(context.WithoutCancel(ctx), works, drafts) {
		select {
		case <-time.After(between(p.rng, time.Millisecond, 30*time.Millisecond)):
		case <-ctx.Done():
			return // never acknowledged
		}
		if p.rng.IntN(2) == 0 {
			drafts = p.draft(works)
		}
	}
}

// draft returns new drafts. drafted counts them, in their order.
func (p *publisher) draft(works []Work) []queue.Draft {
	p.drafted += len(works)
	drafts := make([]queue.Draft, len(works))
	for i, work := range works {
		drafts[i] = queued.Draft(work)
	}
	return drafts
}

// try publishes a batch once and records the answer. Half of the calls have a short
// timeout, which ends before go-redis's retries do.
func (p *publisher) try(ctx context.Context, works []Work, drafts []queue.Draft) bool {
	if p.rng.IntN(2) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, between(p.rng, time.Millisecond, 5*time.Millisecond))
		defer cancel()
	}
	called := time.Now()
	answers, err := p.client.Queues().Publish(ctx, drafts...)
	returned := time.Now()
	p.calls.Add(1)
	if err != nil {
		p.unanswered.Add(1)
	}
	for i, work := range works {
		c := Call{
			Kind: CallSchedule, Client: p.name, Generation: 1, Draft: p.drafted - len(works) + i + 1,
			Called: called, Returned: returned, Earliest: called, Err: err,
		}
		if err == nil {
			c.Message, c.Found = answers[i].ID, FoundNothing
			if !answers[i].Fresh {
				c.Found = FoundPending
				p.duplicates.Add(1)
			}
		}
		p.deliveries.RecordCall(work.Key, c)
	}
	return err == nil
}
