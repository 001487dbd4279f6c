package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/internal/loglimit"
	"github.com/wakebell/wakebell/messages"
)

const (
	// maxInFlight is how many requests the gateway runs at once.
	maxInFlight = 64

	// answerGrace is how much later than its timeout a request may be answered.
	answerGrace = time.Second
)

var (
	errNoGateway = errors.New("no gateway: the System is not running")
	errNoAnswer  = errors.New("the gateway did not answer in time")
	errFull      = errors.New("the queue is full")
)

// sending is a batch that is being sent. Of each stream one request is in flight, so
// that a failed request stops those behind it.
type sending struct {
	Batch
	ctx    context.Context //nolint:containedctx // of the claim, which outlives the call
	cancel context.CancelFunc
	number uint64

	items    []Item
	results  []Result
	ready    []int          // items that may be sent
	behind   []int          // the next item of the same stream, or -1
	inFlight map[uint64]int // items by the number of their request
	unsure   []int          // items that an outage refused
	outage   error          // nothing more is sent
	deadline time.Time
	timer    *time.Timer
}

func newSending(ctx context.Context, cancel context.CancelFunc, number uint64, batch Batch) *sending {
	items := batch.Items()
	b := &sending{
		Batch: batch, ctx: ctx, cancel: cancel, number: number,
		items: items, results: make([]Result, len(items)), behind: make([]int, len(items)), inFlight: map[uint64]int{},
	}
	last := map[string]int{}
	for i, item := range items {
		b.behind[i] = -1
		if before, ok := last[item.Stream]; ok {
			b.behind[before] = i
		} else {
			b.ready = append(b.ready, i)
		}
		last[item.Stream] = i
	}
	return b
}

// next returns the next item to send; it rejects unreadable ones on the way.
func (b *sending) next() (int, bool) {
	for b.outage == nil && len(b.ready) > 0 && time.Now().Before(b.deadline) {
		i := b.ready[0]
		b.ready = b.ready[1:]
		if b.items[i].Request != nil {
			return i, true
		}
		b.conclude(i, Result{Rejected, b.items[i].Err})
	}
	return 0, false
}

// record takes the answer to item i.
func (b *sending) record(i int, a messages.Answer) {
	result, outage := verdict(a)
	if outage != nil {
		b.outage = outage
		b.unsure = append(b.unsure, i)
		return
	}
	b.conclude(i, result)
}

func (b *sending) conclude(i int, result Result) {
	b.results[i] = result
	if result.Verdict == Deferred {
		for j := b.behind[i]; j >= 0; j = b.behind[j] {
			b.results[j].Verdict = Blocked
		}
		return
	}
	if next := b.behind[i]; next >= 0 {
		b.ready = append(b.ready, next)
	}
}

// finish decides about the items that an outage refused. If others of the batch were
// relayed, the items themselves are the cause, and must not hold up the rest.
func (b *sending) finish() {
	if b.timer != nil {
		b.timer.Stop()
	}
	for _, i := range b.inFlight {
		b.unsure = append(b.unsure, i)
		if b.outage == nil {
			b.outage = errNoAnswer
		}
	}
	if b.counts().Relayed == 0 {
		return
	}
	for _, i := range b.unsure {
		b.conclude(i, Result{Deferred, b.outage})
	}
	b.outage = nil
}

func (b *sending) counts() (c Counts) {
	for _, result := range b.results {
		switch result.Verdict {
		case Relayed:
			c.Relayed++
		case Deferred:
			c.Deferred++
		case Rejected:
			c.Rejected++
		case Left, Blocked:
		}
	}
	return c
}

func (b *sending) log(log *slog.Logger, lines *loglimit.Limiter) {
	for _, result := range b.results {
		verdict := ""
		switch result.Verdict {
		case Deferred:
			verdict = "deferred"
		case Rejected:
			verdict = "set aside"
		case Left, Relayed, Blocked:
			continue
		}
		if suppressed, ok := lines.Allow(verdict); ok {
			log.Warn("a row of the outbox was not relayed", "verdict", verdict, "err", result.Err, "suppressed", suppressed)
		}
	}
}

// verdict reads an answer. An outage concerns all rows.
func verdict(a messages.Answer) (result Result, outage error) {
	switch a := a.(type) {
	case *messages.PublishResponse:
		if len(a.GetMessages()) == 0 {
			return Result{Deferred, errFull}, nil
		}
	case *messages.Error:
		err := fmt.Errorf("%s: %s", a.GetCode(), a.GetMessage())
		switch a.GetCode() {
		case messages.Code_CODE_INVALID, messages.Code_CODE_TOO_LARGE, messages.Code_CODE_CONFLICT:
			return Result{Rejected, err}, nil
		case messages.Code_CODE_UNAVAILABLE, messages.Code_CODE_DEADLINE, messages.Code_CODE_OVERLOADED,
			messages.Code_CODE_DRAINING, messages.Code_CODE_MEMORY_FULL:
			return Result{}, err
		default: // an operator can help: rights, a key of another type
			return Result{Deferred, err}, nil
		}
	}
	return Result{Verdict: Relayed}, nil
}

// addressed gives a request its number and timeout. The request is not sent twice.
func addressed(r messages.Request, number uint64, timeout time.Duration) messages.Request {
	limit := durationpb.New(max(timeout, time.Millisecond))
	switch m := r.(type) {
	case *messages.ScheduleRequest:
		m.Request, m.Timeout = number, limit
	case *messages.CancelRequest:
		m.Request, m.Timeout = number, limit
	case *messages.PublishRequest:
		m.Request, m.Timeout = number, limit
	}
	return r
}
