package dashboard

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	maxEvents = 50               // that a feed keeps
	maxNodes  = 1000             // of a topic
	maxLate   = 500              // deliveries whose lateness a feed keeps
	lingering = 20 * time.Second // for which a feed without browsers keeps what it has
	retryTail = 3 * time.Second
)

// feeds read the events of topics while browsers show them: one reader for each
// topic.
type feeds struct {
	tail func(ctx context.Context, topic string) iter.Seq2[wakebelltype.Event, error]

	mu     sync.Mutex
	all    map[string]*feed
	closed bool
}

type feed struct {
	followers int
	left      time.Time // when the last follower left
	stop      context.CancelFunc

	version int64
	events  []wakebelltype.Event // the newest last
	late    []time.Duration      // of the last deliveries, the newest last
	nodes   map[string]time.Time // when each was heard last
	err     error                // why it does not read at the moment
}

// follow reads the events of a topic until the returned function is called.
func (f *feeds) follow(ctx context.Context, topic string) (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return func() {}
	}
	if f.all == nil {
		f.all = map[string]*feed{}
	}
	for name, other := range f.all { // forget what has no followers
		if other.followers == 0 && time.Since(other.left) > lingering {
			delete(f.all, name)
		}
	}
	one := f.all[topic]
	if one == nil {
		one = &feed{nodes: map[string]time.Time{}}
		f.all[topic] = one
	}
	if one.followers++; one.followers == 1 {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		one.stop = cancel
		go f.read(ctx, topic, one)
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			if one.followers--; one.followers == 0 {
				one.left = time.Now()
				one.stop()
			}
		})
	}
}

func (f *feeds) read(ctx context.Context, topic string, to *feed) {
	for ctx.Err() == nil {
		for e, err := range f.tail(ctx, topic) {
			f.mu.Lock()
			to.err = err
			if err == nil {
				to.add(e)
			}
			to.version++
			f.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryTail):
		}
	}
}

func (f *feed) add(e wakebelltype.Event) {
	if e.Node != "" && (len(f.nodes) < maxNodes || !f.nodes[e.Node].IsZero()) {
		f.nodes[e.Node] = time.Now()
	}
	if e.Kind == wakebelltype.EventAttached || e.Kind == wakebelltype.EventNode {
		return
	}
	if e.Kind == wakebelltype.EventDelivered {
		if len(f.late) == maxLate {
			f.late = slices.Delete(f.late, 0, 1)
		}
		f.late = append(f.late, e.Lateness)
	}
	if len(f.events) == maxEvents {
		f.events = slices.Delete(f.events, 0, 1)
	}
	f.events = append(f.events, e)
}

func (f *feeds) version(topic string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.all[topic]; one != nil {
		return one.version
	}
	return 0
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

// heard is a node with the topics that it handles.
type heard struct {
	Name   string
	Topics []string
}

// nodes returns the nodes that handle any of the topics, sorted by name.
func (f *feeds) nodes(topics []string) []heard {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := map[string][]string{}
	for _, topic := range topics {
		if one := f.all[topic]; one != nil {
			for node := range one.nodes {
				of[node] = append(of[node], topic)
			}
		}
	}
	all := make([]heard, 0, len(of))
	for node, topics := range of {
		all = append(all, heard{node, topics})
	}
	slices.SortFunc(all, func(a, b heard) int {
		switch {
		case a.Name < b.Name:
			return -1
		case a.Name > b.Name:
			return 1
		default:
			return 0
		}
	})
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
