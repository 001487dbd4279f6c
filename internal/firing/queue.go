package firing

import (
	"container/heap"
	"time"

	"github.com/wakebell/wakebell/internal/recur"
)

// item is an engine's copy of an entry.
type item struct {
	name  string
	raw   recur.Raw
	entry recur.Entry
	score float64
	gone  bool // its hash does not exist

	at    time.Time // the next instant of work on it, by Redis's clock
	place int       // in the queue; -1: not queued
	tries int       // consecutive failures

	passing bool // its run is skipped, because it overlaps
}

// queue is a heap of items, ordered by their instants.
type queue []*item

// put queues an item for an instant; zero removes it.
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

// byInstant implements heap.Interface.
type byInstant queue

func (q byInstant) Len() int           { return len(q) }
func (q byInstant) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

func (q byInstant) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push implements heap.Interface.
func (q *byInstant) Push(x any) {
	it := x.(*item) // nothing else is pushed
	it.place = len(*q)
	*q = append(*q, it)
}

// Pop implements heap.Interface.
func (q *byInstant) Pop() any {
	old := *q
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	it.place = -1
	return it
}
