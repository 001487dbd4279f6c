package dashboard

import (
	"context"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	maxEvents = 50               // that a feed keeps
	maxNodes  = 1000             // of a topic
	maxLate   = 500              // deliveries whose lateness a feed keeps
	maxRead   = 256              // topics whose events are read: each holds a connection
	viewerMax = maxRead / 4      // topics whose events are read for one principal
	lingering = 20 * time.Second // for which a feed without browsers keeps what it has
	retryTail = 3 * time.Second
)

// feeds read the events of topics while browsers show them: one reader for each
// topic.
type feeds struct {
	tail   func(ctx context.Context, topic string) iter.Seq2[wakebelltype.Event, error]
	prefix string                   // of e.Topic
	left   func(node, topic string) // is called when a node says that it leaves a topic; nil: nothing is

	mu     sync.Mutex
	all    map[string]*feed
	closed bool
}

type feed struct {
	followers int
	viewers   map[string]int // followers of each principal
	left      time.Time      // when the last follower left
	stop      context.CancelFunc

	version int64
	events  []wakebelltype.Event // the newest last
	late    []time.Duration      // of the last deliveries, the newest last
	nodes   map[string]*answer
	err     error     // why it does not read at the moment
	broken  time.Time // since when it has read nothing; zero: it reads
}

// answer is what a node said last of a topic.
type answer struct {
	at    time.Time
	state wakebelltype.NodeState
	known bool // nodes of earlier versions say nothing of their state
}

// silentAfter is for how long a node is shown that repeats its state and has stopped to.
const silentAfter = 10 * time.Second

// forgottenAfter is for how long the silence of a node is shown.
const forgottenAfter = 10 * time.Minute

func (a *answer) gone() bool { return a.goneBy(time.Now()) }

func (a *answer) goneBy(now time.Time) bool { return a.known && now.Sub(a.at) > silentAfter }

// forgotten reports whether the node is shown no longer.
func (a *answer) forgotten() bool { return a.known && time.Since(a.at) > forgottenAfter }

// follow reads the events of a topic until the returned function is called. It returns
// false if the events of too many topics are read, in all or for the viewer.
func (f *feeds) follow(ctx context.Context, viewer, topic string) (leave func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || !f.room(viewer, topic) {
		return nil, false
	}
	if f.all == nil {
		f.all = map[string]*feed{}
	}
	one := f.all[topic]
	if one == nil {
		one = &feed{nodes: map[string]*answer{}, viewers: map[string]int{}}
		f.all[topic] = one
	}
	one.viewers[viewer]++
	if one.followers++; one.followers == 1 {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		one.stop = cancel
		go f.read(ctx, topic, one)
	}
	return sync.OnceFunc(func() { f.leave(one, viewer) }), true
}

// room forgets the feeds without followers, and reports whether there is room for another
// follower of a topic.
func (f *feeds) room(viewer, topic string) bool {
	read, mine := 0, 0
	for name, one := range f.all {
		if one.followers == 0 && time.Since(one.left) > lingering {
			delete(f.all, name)
		}
		if one.followers > 0 && name != topic {
			read++
		}
		if one.viewers[viewer] > 0 && name != topic {
			mine++
		}
	}
	return read < maxRead && mine < viewerMax
}

func (f *feeds) leave(one *feed, viewer string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.viewers[viewer]--; one.viewers[viewer] == 0 {
		delete(one.viewers, viewer)
	}
	if one.followers--; one.followers == 0 {
		one.left = time.Now()
		one.rest()
		one.stop()
	}
}

func (f *feeds) read(ctx context.Context, topic string, to *feed) {
	for ctx.Err() == nil {
		if err := usercode.Called("reading events", func() error {
			for e, err := range f.tail(ctx, topic) {
				f.note(ctx, to, e, err)
			}
			return nil
		}); err != nil {
			f.note(ctx, to, wakebelltype.Event{}, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryTail):
		}
	}
}

// note adds an event, or notes why there is none. That the last follower has left is no reason:
// the next one may have come.
func (f *feeds) note(ctx context.Context, to *feed, e wakebelltype.Event, err error) {
	if e.Kind == wakebelltype.EventLeft && f.left != nil {
		f.left(e.Node, strings.TrimPrefix(e.Topic, f.prefix))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if to.err = err; err != nil {
		to.rest()
	}
	if err != nil || to.add(e) {
		to.version++
	}
}

// rest notes that nothing is read from now on.
func (f *feed) rest() {
	if f.broken.IsZero() {
		f.broken = time.Now()
	}
}

// resume notes that events are read again. The nodes answer at once; silence while nothing was
// read says nothing, for a node may have ended in good order meanwhile.
func (f *feed) resume() {
	maps.DeleteFunc(f.nodes, func(_ string, a *answer) bool { return !f.broken.IsZero() && !a.goneBy(f.broken) })
	f.broken = time.Time{}
}

// add adds an event, and reports whether it changes what is shown.
func (f *feed) add(e wakebelltype.Event) (changed bool) {
	f.resume()
	changed = f.hear(e)
	if e.Kind == wakebelltype.EventAttached || e.Kind == wakebelltype.EventNode || e.Kind == wakebelltype.EventState {
		return changed
	}
	if e.Kind == wakebelltype.EventDelivered && e.Attempt <= 1 && e.Text == "" { // a retry comes after its backoff, and after a snooze is a Text
		if len(f.late) == maxLate {
			f.late = slices.Delete(f.late, 0, 1)
		}
		f.late = append(f.late, e.Lateness)
	}
	if len(f.events) == maxEvents {
		f.events = slices.Delete(f.events, 0, 1)
	}
	f.events = append(f.events, e)
	return true
}

// hear notes that a node said something.
func (f *feed) hear(e wakebelltype.Event) (changed bool) {
	a := f.nodes[e.Node]
	switch {
	case e.Kind == wakebelltype.EventLeft:
		delete(f.nodes, e.Node)
		return a != nil
	case e.Node == "" || a == nil && len(f.nodes) == maxNodes:
		return false
	case a == nil:
		a, changed = &answer{}, true
		f.nodes[e.Node] = a
	}
	changed = changed || a.gone()
	if a.at = time.Now(); e.State != nil {
		changed = changed || !reflect.DeepEqual(a.state, *e.State)
		a.state, a.known = *e.State, true
	}
	return changed
}

func (f *feeds) version(topic string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.all[topic]
	if one == nil {
		return 0
	}
	gone := int64(0)
	for _, a := range one.nodes {
		if a.gone() {
			gone++
		}
		if a.forgotten() {
			gone++
		}
	}
	return one.version + gone
}

// events returns the latest events of a topic, the newest first, and why they are
// not read at the moment.
func (f *feeds) events(topic string) ([]wakebelltype.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.all[topic]
	if one == nil {
		return nil, nil
	}
	events := slices.Clone(one.events)
	slices.Reverse(events)
	return events, one.err
}

// lateness is how late deliveries began after their timers were due.
type lateness struct {
	Deliveries         int // that were seen, the last ones
	Median, P99, Worst time.Duration
}

// lateness returns that of the last deliveries of a topic.
func (f *feeds) lateness(topic string) lateness {
	f.mu.Lock()
	var late []time.Duration
	if one := f.all[topic]; one != nil {
		late = slices.Clone(one.late)
	}
	f.mu.Unlock()
	if len(late) == 0 {
		return lateness{}
	}
	slices.Sort(late)
	at := func(percent int) time.Duration { return late[(len(late)-1)*percent/100] }
	return lateness{len(late), at(50), at(99), at(100)}
}

// nodes returns the nodes that handle any of the topics, sorted by name, and those that
// stopped answering a short while ago. While the events of a topic are not read, nothing
// is known of the silence of its nodes.
func (f *feeds) nodes(topics []string) []heard {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := map[string]*heard{}
	for _, topic := range topics {
		one := f.all[topic]
		if one == nil {
			continue
		}
		for node, a := range one.nodes {
			if a.forgotten() || a.gone() && (one.err != nil || !one.broken.IsZero() && !a.goneBy(one.broken)) {
				continue
			}
			if of[node] == nil {
				of[node] = &heard{Name: node}
			}
			t := heardTopic{Name: topic, State: a.state}
			if a.gone() {
				t.Silent = a.at
			}
			of[node].add(t, a.known)
		}
	}
	all := make([]heard, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, *of[name])
	}
	return all
}

func (f *feeds) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, one := range f.all {
		if one.followers > 0 {
			one.stop()
		}
	}
}
