// Package softlimit keeps the garbage of a process small beside what it holds.
//
// By default the Go runtime lets garbage grow to the size of what lives. A node
// that clients have hold 60 MiB would take 120. Below [Floor] nothing changes;
// above it, garbage is collected once the process takes a third more than what lives.
// Much of that are bodies of messages, which cost the collector nothing.
package softlimit

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Floor is the least soft limit in bytes.
const Floor = 64 << 20

// every is how often the limit follows what lives.
const every = 250 * time.Millisecond

// Keep sets the runtime's soft memory limit until ctx ends. It does nothing when
// the environment sets GOGC or GOMEMLIMIT.
func Keep(ctx context.Context) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	defer debug.SetMemoryLimit(math.MaxInt64)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		debug.SetMemoryLimit(limit(lives()))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// limit is the soft limit of a process in which so many bytes live.
func limit(live uint64) int64 { return int64(max(Floor, live+live/3)) } //nolint:gosec // of a machine

// lives is what the last collection found alive, and what is not of the heap.
func lives() uint64 {
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
