package metrics

import (
	"sync"

	"github.com/wakebell/wakebell/internal/text"
)

// Other is the label of topics, queues and gates beyond the limit.
const Other = "_other"

// folder bounds the values of a label: the first names up to a limit have a value of
// their own, and all others share Other. A process that restarts may choose others. Names
// come from Redis too, and one label of invalid UTF-8 fails a whole scrape.
type folder[T any] struct {
	limit  int
	create func(label string) T

	mu    sync.RWMutex
	named map[string]T
	other T
	full  bool // other was created
}

func newFolder[T any](limit int, create func(label string) T) folder[T] {
	return folder[T]{limit: limit, create: create, named: map[string]T{}}
}

// of returns what a name is measured with.
func (f *folder[T]) of(name string) T {
	f.mu.RLock()
	found, ok := f.named[name]
	f.mu.RUnlock()
	if ok {
		return found
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if found, ok := f.named[name]; ok {
		return found
	}
	if len(f.named) < f.limit {
		f.named[name] = f.create(text.Escaped(name))
		return f.named[name]
	}
	if !f.full {
		f.other, f.full = f.create(Other), true
	}
	return f.other
}
