// Package memorylimit bounds the garbage of a process to a third of its live memory.
//
// By default the Go runtime lets garbage grow to the size of the live heap: a node in
// which peers hold 60 MiB would take 120. Most of such memory is bodies of messages,
// which have no pointers, so frequent collections are cheap. Below [Floor] nothing
// changes.
package memorylimit

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Floor is the minimum of the soft limit, in bytes.
const Floor = 64 << 20

// interval is how often the limit follows the live memory.
const interval = 250 * time.Millisecond

// Keep sets the runtime's soft memory limit until ctx ends. It does nothing when
// the environment sets GOGC or GOMEMLIMIT.
func Keep(ctx context.Context) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	defer debug.SetMemoryLimit(math.MaxInt64)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		debug.SetMemoryLimit(limit(live()))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// limit returns the soft limit for a number of live bytes.
func limit(live uint64) int64 { return int64(max(Floor, live+live/3)) } //nolint:gosec // of a machine

// live returns the bytes that the last collection found alive, and those outside of
// the heap.
func live() uint64 {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/memory/classes/os-stacks:bytes"},
		{Name: "/memory/classes/metadata/mspan/inuse:bytes"},
		{Name: "/memory/classes/metadata/other:bytes"},
		{Name: "/memory/classes/other:bytes"},
	}
	metrics.Read(s)
	sum := uint64(0)
	for _, m := range s {
		sum += m.Value.Uint64()
	}
	return sum
}
