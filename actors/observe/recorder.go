package observe

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell/internal/loglimit"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/wakebelltype"
)

// RecordStore writes records. Its calls may fail or take long; no delivery waits for them.
type RecordStore interface {
	// WriteCounts adds counts; a repeated call with the same incarnation and number
	// adds nothing.
	WriteCounts(ctx context.Context, topic, incarnation string, call uint64, c wakebelltype.ThroughputCounts) error
	WriteHistory(ctx context.Context, topic, node string, attempts []wakebelltype.Attempt) error
}

const (
	// writeEvery is how long attempts are batched before they are written.
	writeEvery = 250 * time.Millisecond
	// countEvery is after how many of these the counts are written.
	countEvery = 20
	// attemptsAtOnce bounds the attempts of one call of the store.
	attemptsAtOnce = 500
	// maxPendingAttempts bounds the attempts of a topic that wait; further ones are counted as
	// failures.
	maxPendingAttempts = 20_000
	// lastWrite bounds the writes when a runtime stops.
	lastWrite = time.Second

	// maxID and maxText bound what is kept of ids and texts, in bytes.
	maxID, maxText = 512, 256
)

// Recorder writes the records of the topics of a runtime.
type Recorder struct {
	store       RecordStore // nil: nothing is recorded
	node        string
	incarnation string
	log         *slog.Logger
	io          *sync.WaitGroup

	failed atomic.Int64
	lines  loglimit.Limiter

	calls uint64      // of WriteCounts; of the goroutine alone
	armed atomic.Bool // the goroutine runs; changed under mu

	mu      sync.Mutex
	topics  []*TopicRecords
	cancel  context.CancelFunc
	stopped bool
}

// NewRecorder returns a Recorder for a node, whose name is in the history, with an incarnation
// that no other has. A nil store records nothing. IO counts the goroutine.
func NewRecorder(store RecordStore, node, incarnation string, log *slog.Logger, io *sync.WaitGroup) *Recorder {
	return &Recorder{
		store: store, node: node, incarnation: incarnation, log: log, io: io, lines: loglimit.Limiter{Every: time.Minute},
	}
}

// Failed returns how many attempts and batches of counts could not be written.
func (r *Recorder) Failed() int64 { return r.failed.Load() }

// TopicRecords is what is recorded of one topic. A nil TopicRecords records nothing.
type TopicRecords struct {
	recorder *Recorder
	store    RecordStore
	name     string
	policy   wakebelltype.HistoryPolicy
	counters *Counters // nil: not recorded

	removed atomic.Bool

	mu       sync.Mutex
	attempts []wakebelltype.Attempt

	counts *recordedCounts // of the goroutine alone; nil: nothing was counted
}

// recordedCounts are the counts of a topic that were written.
type recordedCounts struct {
	written, pending totals // pending is not confirmed
	pendingLatest    time.Duration
	call             uint64
}

// totals are what a poller has done since it was created. Lateness is a sum over those
// that were Started.
type totals struct {
	Handled, Failed, Dead, Started int64
	Lateness                       time.Duration
	Latenesses                     wakebelltype.Latenesses
}

func (c totals) minus(d totals) totals {
	return totals{c.Handled - d.Handled, c.Failed - d.Failed, c.Dead - d.Dead, c.Started - d.Started, c.Lateness - d.Lateness, c.Latenesses.Minus(d.Latenesses)}
}

func (c totals) plus(d totals) totals {
	return totals{c.Handled + d.Handled, c.Failed + d.Failed, c.Dead + d.Dead, c.Started + d.Started, c.Lateness + d.Lateness, c.Latenesses.Plus(d.Latenesses)}
}

// Add adds a topic; a nil store is that of the recorder, and nil counters are not
// written. It returns nil if nothing of the topic is recorded.
func (r *Recorder) Add(name string, store RecordStore, policy wakebelltype.HistoryPolicy, counters *Counters) *TopicRecords {
	if r.store == nil || (policy == wakebelltype.HistoryOff && counters == nil) {
		return nil
	}
	if store == nil {
		store = r.store
	}
	t := &TopicRecords{recorder: r, store: store, name: name, policy: policy, counters: counters}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.topics = append(r.topics, t)
	return t
}

// Wants reports whether an attempt is recorded. repeated: it is not the timer's first.
func (t *TopicRecords) Wants(succeeded, repeated bool) bool {
	if t == nil {
		return false
	}
	switch t.policy {
	case wakebelltype.HistoryAll:
		return true
	case wakebelltype.HistoryFailures:
		return !succeeded || repeated
	default:
		return false
	}
}

// Append records an attempt.
func (t *TopicRecords) Append(a wakebelltype.Attempt) {
	a.ID, a.Error = strings.Clone(text.Cut(a.ID, maxID)), strings.Clone(text.Cut(a.Error, maxText)) // they share the memory of a reply
	t.mu.Lock()
	full := len(t.attempts) >= maxPendingAttempts
	if !full {
		t.attempts = append(t.attempts, a)
	}
	t.mu.Unlock()
	if full {
		t.recorder.failed.Add(1)
	}
}

// Wake makes the recorder write what there is.
func (t *TopicRecords) Wake() {
	if t != nil && !t.recorder.armed.Load() {
		t.recorder.start()
	}
}

func (r *Recorder) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || r.armed.Load() {
		return
	}
	r.armed.Store(true)
	//nolint:forbidigo // the context lasts as long as the runtime; Stop ends it
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.io.Go(func() { r.run(ctx, cancel) })
}

// Stop writes what is left and ends the goroutine, without waiting for it.
func (r *Recorder) Stop() {
	if r.store == nil {
		return
	}
	r.start() // there may be records since its goroutine ended
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	if r.cancel != nil {
		r.cancel()
	}
}

func (r *Recorder) run(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
			defer cancel()
			r.write(last, true)
			return
		}
		if n%countEvery != 0 {
			r.write(ctx, false)
			continue
		}
		if !r.write(ctx, true) && r.disarm() {
			return
		}
	}
}

// disarm ends the goroutine, unless there is something to write: what comes later
// starts it again.
func (r *Recorder) disarm() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.armed.Store(false)
	for _, t := range r.topics {
		if t.waits() {
			r.armed.Store(true)
			return false
		}
	}
	return true
}

// waits reports whether there is something to write.
func (t *TopicRecords) waits() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.attempts) > 0 || t.counters != nil && t.counters.recorded() != t.written()
}

// written returns the counts that were written.
func (t *TopicRecords) written() (written totals) {
	if t.counts != nil {
		written = t.counts.written
	}
	return written
}

// Remove writes what is left of a topic, and forgets it.
func (t *TopicRecords) Remove() {
	if t != nil {
		t.removed.Store(true)
		t.Wake()
	}
}

// write writes attempts and, with counts, the counts. It reports whether there were
// any.
func (r *Recorder) write(ctx context.Context, counts bool) (found bool) {
	r.mu.Lock()
	topics := r.topics
	r.mu.Unlock()
	for _, t := range topics {
		removed := t.removed.Load()
		left := t.writeHistory(ctx)
		if counts && t.counters != nil {
			left = t.writeCounts(ctx) || left
		}
		found = found || left
		if removed && counts && !left {
			r.forget(t)
		}
	}
	return found
}

func (r *Recorder) forget(t *TopicRecords) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.topics = slices.DeleteFunc(slices.Clone(r.topics), func(other *TopicRecords) bool { return other == t })
}

func (t *TopicRecords) writeHistory(ctx context.Context) (found bool) {
	t.mu.Lock()
	attempts := t.attempts
	t.attempts = nil
	t.mu.Unlock()
	for from := 0; from < len(attempts); from += attemptsAtOnce {
		part := attempts[from:min(from+attemptsAtOnce, len(attempts))]
		if err := t.store.WriteHistory(ctx, t.name, t.recorder.node, part); err != nil {
			t.recorder.fail(int64(len(part)), "history not written", t.name, err)
		}
	}
	return len(attempts) > 0
}

// writeCounts writes what was counted since the last confirmed call. A call that
// failed is repeated as it was, because Redis may have run it.
func (t *TopicRecords) writeCounts(ctx context.Context) (found bool) {
	c := t.counts
	if c == nil {
		if t.counters.recorded() == (totals{}) {
			return false
		}
		c = &recordedCounts{}
		t.counts = c
	}
	if c.pending == (totals{}) {
		if c.pending = t.counters.recorded().minus(c.written); c.pending == (totals{}) {
			return false
		}
		t.recorder.calls++
		c.call, c.pendingLatest = t.recorder.calls, t.counters.latest()
	}
	p := c.pending
	if err := t.store.WriteCounts(ctx, t.name, t.recorder.incarnation, c.call, wakebelltype.ThroughputCounts{
		Handled: p.Handled, Failed: p.Failed, Dead: p.Dead, Started: p.Started, Lateness: p.Lateness, MaxLateness: c.pendingLatest,
		Latenesses: p.Latenesses,
	}); err != nil {
		t.recorder.fail(1, "counts not written", t.name, err)
		return true
	}
	c.written, c.pending = c.written.plus(p), totals{}
	return true
}

func (r *Recorder) fail(n int64, what, topic string, err error) {
	r.failed.Add(n)
	if skipped, ok := r.lines.Allow(what); ok {
		r.log.Warn("records not written", "what", what, "topic", topic, "err", err, "skipped", skipped)
	}
}
