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

	// restWait is how long a batch of which rows were relayed waits without any answer
	// for the other rows.
	restWait = time.Second
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

	items      []Item
	results    []Result
	ready      []int          // items that may be sent
	behind     []int          // the next item of the same stream, or -1
	inFlight   map[uint64]int // items by the number of their request
	lanes      map[int64]*lane
	anyRelayed bool
	outage     error // of the process: nothing more is sent, and all rows stay as they are
	deadline   time.Time
	timer      *time.Timer
}

// lane is what is known about the rows of a lane in the batch.
type lane struct {
	relayed bool
	alone   bool // the lane is one stream
	refused []refusal
	apart   []refusal // for a reason that other rows of the lane do not have
}

type refusal struct {
	item   int
	result Result
}

// held reports whether the lane as a whole is refused, as far as is known.
func (l *lane) held() bool { return len(l.refused) > 0 && (l.alone || !l.relayed) }

func newSending(ctx context.Context, cancel context.CancelFunc, number uint64, batch Batch) *sending {
	items := batch.Items()
	b := &sending{
		Batch: batch, ctx: ctx, cancel: cancel, number: number,
		items: items, results: make([]Result, len(items)), behind: make([]int, len(items)),
		inFlight: map[uint64]int{}, lanes: map[int64]*lane{},
	}
	last := map[string]int{}
	for i, item := range items {
		if b.lanes[item.Lane] == nil {
			b.lanes[item.Lane] = &lane{alone: item.Alone}
		}
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

// next returns the next item to send; it rejects unreadable ones on the way. Items of a
// lane that is refused are not sent.
func (b *sending) next() (int, bool) {
	for b.outage == nil && len(b.ready) > 0 && time.Now().Before(b.deadline) {
		i := b.ready[0]
		b.ready = b.ready[1:]
		switch {
		case b.items[i].Request == nil:
			b.conclude(i, Result{Verdict: Rejected, Err: b.items[i].Err})
		case !b.lanes[b.items[i].Lane].held():
			return i, true
		}
	}
	return 0, false
}

// record takes the answer to item i.
func (b *sending) record(i int, a messages.Answer) {
	result, outage := verdict(a)
	switch {
	case outage != nil:
		b.outage = outage
	case result.Verdict == Deferred && notFound(a):
		l := b.lanes[b.items[i].Lane]
		l.apart = append(l.apart, refusal{i, result})
	case result.Verdict == Deferred:
		b.refuse(i, result)
	default:
		b.conclude(i, result)
	}
}

// refuse notes a refusal. What it means for the lane is decided when the batch ends.
func (b *sending) refuse(i int, result Result) {
	l := b.lanes[b.items[i].Lane]
	l.refused = append(l.refused, refusal{i, result})
}

func (b *sending) conclude(i int, result Result) {
	b.results[i] = result
	if result.Verdict == Relayed {
		b.anyRelayed, b.lanes[b.items[i].Lane].relayed = true, true
	}
	if next := b.behind[i]; next >= 0 {
		b.ready = append(b.ready, next)
	}
}

// finish decides about the refused items. If others of the lane were relayed, the items
// themselves are the cause, and hold up their streams alone.
func (b *sending) finish() {
	if b.timer != nil {
		b.timer.Stop()
	}
	for _, i := range b.inFlight {
		b.refuse(i, Result{Verdict: Deferred, Err: errNoAnswer, Outage: true})
	}
	if b.anyRelayed {
		b.outage = nil
	}
	for number, l := range b.lanes {
		b.deferItems(l.apart)
		if l.held() {
			b.park(number, l.refused)
		} else {
			b.deferItems(l.refused)
		}
	}
}

// deferItems defers items, and those behind them.
func (b *sending) deferItems(refused []refusal) {
	for _, r := range refused {
		b.results[r.item] = r.result
		for j := b.behind[r.item]; j >= 0; j = b.behind[j] {
			b.results[j].Verdict = Blocked
		}
	}
}

// park parks the items of a lane that were not relayed.
func (b *sending) park(lane int64, refused []refusal) {
	for _, r := range refused {
		r.result.Verdict = Parked
		b.results[r.item] = r.result
	}
	for i, item := range b.items {
		if item.Lane == lane && b.results[i].Verdict == Left {
			b.results[i] = Result{Verdict: Parked}
		}
	}
}

func (b *sending) counts() (c Counts) {
	for _, result := range b.results {
		switch result.Verdict {
		case Relayed:
			c.Relayed++
		case Deferred:
			c.Deferred++
		case Parked:
			if result.Err != nil {
				c.Deferred++
			}
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
		case Deferred, Parked:
			verdict = "deferred"
		case Rejected:
			verdict = "set aside"
		case Left, Relayed, Blocked:
		}
		if verdict == "" || result.Err == nil {
			continue
		}
		if suppressed, ok := lines.Allow(verdict); ok {
			log.Warn("a row of the outbox was not relayed", "verdict", verdict, "err", result.Err, "suppressed", suppressed)
		}
	}
}

// verdict reads an answer. An outage concerns this process, and so all rows.
func verdict(a messages.Answer) (result Result, outage error) {
	switch a := a.(type) {
	case *messages.PublishResponse:
		if len(a.GetMessages()) == 0 {
			return Result{Verdict: Deferred, Err: errFull}, nil
		}
	case *messages.Error:
		err := fmt.Errorf("%s: %s", a.GetCode(), a.GetMessage())
		switch a.GetCode() {
		case messages.Code_CODE_INVALID, messages.Code_CODE_TOO_LARGE, messages.Code_CODE_CONFLICT:
			return Result{Verdict: Rejected, Err: err}, nil
		case messages.Code_CODE_OVERLOADED, messages.Code_CODE_DRAINING:
			return Result{}, err
		case messages.Code_CODE_UNAVAILABLE, messages.Code_CODE_DEADLINE, messages.Code_CODE_MEMORY_FULL:
			// On a Cluster it may be one master of several.
			return Result{Verdict: Deferred, Err: err, Outage: true}, nil
		default: // an operator can help: rights, a key of another type
			return Result{Verdict: Deferred, Err: err}, nil
		}
	}
	return Result{Verdict: Relayed}, nil
}

// notFound reports that a timer is part of a join that is not there, or not yet: the row of the join
// may be behind it. Others of the topic do not wait for it.
func notFound(a messages.Answer) bool {
	e, ok := a.(*messages.Error)
	return ok && e.GetCode() == messages.Code_CODE_NOT_FOUND
}

// addressed gives a request its number and timeout. The request is not sent twice.
func addressed(r messages.Request, number uint64, timeout time.Duration) messages.Request {
	limit := durationpb.New(max(timeout, time.Millisecond))
	switch m := r.(type) {
	case *messages.ScheduleRequest:
		m.Request, m.Timeout = number, limit
	case *messages.ScheduleBatchRequest:
		m.Request, m.Timeout = number, limit
	case *messages.CancelRequest:
		m.Request, m.Timeout = number, limit
	case *messages.PublishRequest:
		m.Request, m.Timeout = number, limit
	}
	return r
}
