package metrics

import (
	"slices"
	"sync"
	"time"
)

// windowFor is for how long one half of a window counts.
const windowFor = 5 * time.Minute

// window has the distribution of the last 5 to 10 minutes, in two halves of which the older
// is dropped. A topic has its 99th percentile from here: the buckets of a histogram would
// be twenty series for each topic.
type window struct {
	bounds []float64 // seconds, growing
	halves [2][]uint32
	began  time.Time // the present half, halves[0]
}

// add counts a duration. The caller has a lock.
func (w *window) add(d time.Duration, now time.Time) {
	w.turn(now)
	if w.halves[0] == nil {
		w.halves[0] = make([]uint32, len(w.bounds)+1)
	}
	at, _ := slices.BinarySearch(w.bounds, d.Seconds())
	w.halves[0][at]++
}

// turn drops what is too old.
func (w *window) turn(now time.Time) {
	age := now.Sub(w.began)
	switch {
	case w.began.IsZero() || age >= 2*windowFor:
		w.halves, w.began = [2][]uint32{}, now
	case age >= windowFor:
		w.halves, w.began = [2][]uint32{nil, w.halves[0]}, w.began.Add(windowFor)
	}
}

// quantile returns a quantile of what was counted, which is interpolated within a bucket;
// false: nothing was counted. What is above all bounds counts as the last.
func (w *window) quantile(q float64, now time.Time) (seconds float64, found bool) {
	w.turn(now)
	counts, total := make([]float64, len(w.bounds)+1), 0.0
	for _, half := range w.halves {
		for i, n := range half {
			counts[i] += float64(n)
			total += float64(n)
		}
	}
	if total == 0 {
		return 0, false
	}
	rank, below := q*total, 0.0
	for i, upper := range w.bounds {
		if below+counts[i] >= rank {
			lower := 0.0
			if i > 0 {
				lower = w.bounds[i-1]
			}
			return lower + (upper-lower)*(rank-below)/counts[i], true
		}
		below += counts[i]
	}
	return w.bounds[len(w.bounds)-1], true
}

// Handler measures the handlers of a topic or a queue on this node. A nil Handler measures
// nothing.
type Handler struct {
	m   *Metrics
	key string // see Metrics.key

	mu    sync.Mutex
	past  *past // nil: nothing was measured
	first *Run  // that run, the oldest first
	last  *Run
	free  *Run
}

// past has what was measured of a topic of late.
type past struct{ late, took window }

// measured returns what was measured. The caller has the lock.
func (h *Handler) measured() *past {
	if h.past == nil {
		h.past = &past{late: window{bounds: delays}, took: window{bounds: seconds}}
	}
	return h.past
}

// Run is a handler that runs.
type Run struct {
	began      time.Time
	prev, next *Run
}

// Handler returns what the handlers of a topic are measured with, by its full name or that
// of one of its shards, or those of a queue.
func (m *Metrics) Handler(name string, queue bool) *Handler {
	if m == nil {
		return nil
	}
	key := m.key(name, queue)
	m.handlersMu.Lock()
	defer m.handlersMu.Unlock()
	h := m.handlers[key]
	if h == nil {
		h = &Handler{m: m, key: key}
		m.handlers[key] = h
	}
	return h
}

// Measures reports whether deliveries are measured at present.
func (h *Handler) Measures() bool {
	return h != nil && h.m.delivery.duration.Enabled(unrelated)
}

// Began counts a handler that begins. Its end must be counted with Ended.
func (h *Handler) Began(at time.Time) *Run {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.free
	if r == nil {
		r = &Run{}
	} else {
		h.free = r.next
	}
	*r = Run{began: at, prev: h.last}
	if h.last == nil {
		h.first = r
	} else {
		h.last.next = r
	}
	h.last = r
	return r
}

// Late records how late a handler begins, at an instant.
func (h *Handler) Late(by time.Duration, at time.Time) {
	by = max(by, 0)
	h.m.delivery.lateness.Record(unrelated, by.Seconds())
	h.mu.Lock()
	defer h.mu.Unlock()
	h.measured().late.add(by, at)
}

// Batch records the size of a batch.
func (h *Handler) Batch(size int) { h.m.delivery.batch.Record(unrelated, float64(size)) }

// Ended records the ends of what a handler was called for: of one delivery, or of a batch.
func (h *Handler) Ended(r *Run, results ...Result) {
	now := time.Now()
	took := now.Sub(r.began)
	for _, each := range results {
		h.m.delivery.duration.Record(unrelated, took.Seconds(), processed[each].record...)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for range results {
		h.measured().took.add(took, now)
	}
	if r.prev == nil {
		h.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		h.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.next, h.free = h.free, r
}

// handling is what the handlers of a topic do at an instant.
type handling struct {
	key        string
	late, took float64       // 99th percentiles in seconds, below 0: unknown
	oldest     time.Duration // since the handler that runs for longest began; 0: none runs
}

// handlings returns what all handlers do.
func (m *Metrics) handlings() []handling {
	m.handlersMu.Lock()
	all := make([]*Handler, 0, len(m.handlers))
	for _, h := range m.handlers {
		all = append(all, h)
	}
	m.handlersMu.Unlock()
	found, now := make([]handling, 0, len(all)), time.Now()
	for _, h := range all {
		found = append(found, h.handling(now))
	}
	return found
}

func (h *Handler) handling(now time.Time) handling {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := handling{key: h.key, late: -1, took: -1}
	if h.past != nil {
		if p99, found := h.past.late.quantile(.99, now); found {
			of.late = p99
		}
		if p99, found := h.past.took.quantile(.99, now); found {
			of.took = p99
		}
	}
	if h.first != nil {
		of.oldest = now.Sub(h.first.began)
	}
	return of
}
