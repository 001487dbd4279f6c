package firing

import (
	"container/heap"
	"time"

	"github.com/wakebell/wakebell/internal/recur"
)

// item is an entry as an engine knows it.
type item struct {
	name  string
	raw   recur.Raw
	entry recur.Entry
	score float64
	gone  bool // its hash is not there

	at    time.Time // when to do something about it, by Redis's clock
	place int       // in the queue; -1: it is not in it
	tries int       // in vain, in a row

	passing bool // its run is passed over, because it overlaps
}

// queue orders items by when they are to be looked at: a heap.
type queue []*item

// put moves an item to an instant; zero takes it out.
func (q *queue) put(it *item, at time.Time) {
	it.at = at
	switch {
	case at.IsZero() && it.place >= 0:
		heap.Remove((*byInstant)(q), it.place)
	case at.IsZero():
	case it.place >= 0:
		heap.Fix((*byInstant)(q), it.place)
	default:
		heap.Push((*byInstant)(q), it)
	}
}

func (q queue) first() *item {
	if len(q) == 0 {
		return nil
	}
	return q[0]
}

// byInstant is what the heap needs.
type byInstant queue

func (q byInstant) Len() int           { return len(q) }
func (q byInstant) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

func (q byInstant) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push is for package heap.
func (q *byInstant) Push(x any) {
	it := x.(*item) // nothing else is pushed
	it.place = len(*q)
	*q = append(*q, it)
}

// Pop is for package heap.
func (q *byInstant) Pop() any {
	old := *q
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	it.place = -1
	return it
}
