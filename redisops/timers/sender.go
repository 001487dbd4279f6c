package timers

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

// sender sends the schedules of a store. While maxInFlight calls are in flight on a server,
// later schedules wait. When a call returns, the next one carries what waits: the timers of
// each topic in one script, the scripts of several topics in one pipeline, in the order in
// which the topics began to wait, and together no more than one script may have. A schedule
// without others does not wait, unless its topic has a window.
//
// It buys throughput of many callers that schedule one timer each: 50 callers store
// 65,000 timers/s instead of 19,000 on two cores, loopback, and a timer costs 12
// allocations instead of 35 (go test ./redisops/timers -bench Schedule/callers=50).
// Timers.NoCoalescing switches it off.
type sender struct {
	mu      sync.Mutex
	topics  map[string]*line   // the last maxCounted or so that were scheduled on
	servers map[string]*outlet // by address
}

const (
	// maxInFlight is how many calls may be in flight on a server: more calls are smaller,
	// and cost Redis and the client more.
	maxInFlight = 4
	// maxScripts bounds the scripts of a pipeline.
	maxScripts = 64
	// maxCounted is the number of topics whose calls are counted; of more topics, an idle
	// one is forgotten for each new one.
	maxCounted = 1024
	// windowEntries is the number of timers from which a schedule does not open a window:
	// others would add little to its call.
	windowEntries = 64
)

// outlet is the way to one server.
type outlet struct {
	inFlight int
	lines    []*line // those whose schedules wait for a call to return
}

// line is the schedules on one topic.
type line struct {
	to      *outlet
	waiting []*waiter
	gathers bool // they wait for the end of a window
	queued  bool // the line is one of those of its outlet
	window  window
}

// waiter is one schedule that waits to be sent with others.
type waiter struct {
	part   *part
	line   *line
	ctx    context.Context //nolint:containedctx // of the waiting caller
	flight *flight         // nil until it is sent
	done   chan struct{}   // closed when answer and err are set
	answer []wakebelltype.Scheduled
	err    error
}

// enter returns a waiter to wait with. If it returns nil, the caller may call the script at
// once, and must call finish with the outlet afterwards. A fixed window replaces the automatic
// one; a negative one is none.
func (s *Timers) enter(ctx context.Context, p *part, server string) (*waiter, *outlet) {
	g := &s.sender
	g.mu.Lock()
	defer g.mu.Unlock()
	l, to := g.topics[p.topic], g.servers[server]
	if l == nil {
		l = g.add(p.topic)
	}
	if to == nil {
		to = &outlet{}
		g.servers[server] = to
	}
	if l.to == nil || !l.gathers && !l.queued {
		l.to = to
	}
	wait := s.ScheduleWindow
	switch {
	case p.load.entries >= windowEntries:
		wait = 0
	case wait == 0 && l.window.count(time.Now()):
		wait = windowWidth
	}
	if l.to.inFlight < maxInFlight && wait <= 0 {
		l.to.inFlight++
		return nil, l.to
	}
	w := &waiter{part: p, line: l, ctx: ctx, done: make(chan struct{})}
	l.waiting = append(l.waiting, w)
	switch to = l.to; {
	case l.gathers || l.queued:
	case to.inFlight < maxInFlight:
		to.inFlight++ // of the call that the end of the window makes
		l.gathers = true
		time.AfterFunc(wait, func() { s.closeWindow(l, to) })
	default:
		l.queue()
	}
	return w, nil
}

// queue puts the line at the end of those of its server. mu is held.
func (l *line) queue() { l.queued, l.to.lines = true, append(l.to.lines, l) }

// add adds a topic. mu is held.
func (g *sender) add(topic string) *line {
	if len(g.topics) >= maxCounted {
		for other, l := range g.topics {
			if !l.gathers && !l.queued {
				delete(g.topics, other)
				break
			}
		}
	}
	l := &line{}
	g.topics[topic] = l
	return l
}

// leave removes a waiter whose caller gives up. If it is already sent, the timers may be
// stored all the same; a flight without remaining waiters is cancelled.
func (g *sender) leave(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.flight == nil {
		w.line.waiting = slices.DeleteFunc(w.line.waiting, func(other *waiter) bool { return other == w })
	} else if w.flight.waiting.Add(-1) == 0 {
		w.flight.cancel()
	}
}

// closeWindow sends the schedules that a window has gathered.
func (s *Timers) closeWindow(l *line, to *outlet) {
	s.sender.mu.Lock()
	l.gathers = false
	l.window.gathered(time.Now(), len(l.waiting))
	l.queue()
	s.sender.mu.Unlock()
	s.finish(to)
}

// finish ends a call to a server and sends what waits for it.
func (s *Timers) finish(to *outlet) {
	s.sender.mu.Lock()
	defer s.sender.mu.Unlock()
	if len(to.lines) > 0 {
		if f := to.take(); f != nil {
			// It lasts as long as any of its callers waits, not only the first.
			ctx, cancel := context.WithCancel(context.WithoutCancel(f.calls[0][0].ctx))
			f.cancel = cancel
			go s.fly(ctx, f, to)
			return
		}
	}
	to.inFlight--
}

// window decides whether the schedules of a topic wait for each other. The zero value is
// closed. It has no lock.
//
// Callers that come by themselves, such as requests, lose nothing but some milliseconds.
// Callers that wait for one schedule before they begin the next lose throughput. So the
// window opens only above busyRate, and closes as soon as fewer calls come than before:
// a single caller loses three windows, and then as many again after a pause that doubles
// from minPause to maxPause.
type window struct {
	open     bool
	from     time.Time // when the period began over which calls are counted
	calls    int       // in the period
	rate     float64   // calls a second before it opened
	short    int       // windows in a row in which few calls came
	openedAt time.Time
	pause    time.Duration // after the last closure
	closedAt time.Time
}

const (
	// windowWidth is for how long calls wait while a window is open. It makes a twentieth of the
	// calls at 2,000 a second.
	windowWidth = 10 * time.Millisecond
	// busyRate is the number of calls a second from which a window opens; ten come in it.
	busyRate = 1000
	// A period has at least periodCalls and takes at least minPeriod; if it takes more than
	// maxPeriod, the topic is not busy.
	periodCalls = 512
	minPeriod   = 100 * time.Millisecond
	maxPeriod   = time.Second
	// keptRate is the part of the rate that must stay while a window is open; one period
	// of calls that come by chance differs from the next by 6 %.
	keptRate = 0.85
	// keptCalls is the part of the calls that one window must bring at least, and
	// maxShort how many windows in a row may bring fewer.
	keptCalls = 0.5
	maxShort  = 3
	minPause  = time.Second
	maxPause  = time.Minute
	// soundFor is how long a window must have been open for the next pause to be short.
	soundFor = 10 * time.Second
)

// count counts a call, and reports whether it waits for others.
func (w *window) count(now time.Time) (waits bool) {
	passed := now.Sub(w.from)
	w.calls++
	switch {
	case passed > maxPeriod:
		*w = window{pause: w.pause, closedAt: w.closedAt}
		w.from, w.calls = now, 1
	case w.calls > periodCalls && passed >= minPeriod:
		w.judge(now, float64(w.calls-1)/passed.Seconds())
		w.from, w.calls = now, 1
	}
	return w.open
}

// judge opens or closes the window after a period with the given rate.
func (w *window) judge(now time.Time, rate float64) {
	switch {
	case !w.open:
		if rate >= busyRate && now.Sub(w.closedAt) >= w.pause {
			w.open, w.rate, w.openedAt, w.short = true, rate, now, 0
		}
	case rate < keptRate*w.rate:
		w.shut(now)
	}
}

// gathered notes how many calls waited until the end of a window.
func (w *window) gathered(now time.Time, calls int) {
	if !w.open {
		return
	}
	if float64(calls) >= max(2, keptCalls*w.rate*windowWidth.Seconds()) {
		w.short = 0
	} else if w.short++; w.short == maxShort {
		w.shut(now)
	}
}

func (w *window) shut(now time.Time) {
	if now.Sub(w.openedAt) >= soundFor {
		w.pause = 0
	}
	w.pause = min(max(2*w.pause, minPause), maxPause)
	w.open, w.closedAt, w.from, w.calls = false, now, now, 0
}
