package remote_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/remote"
)

// mallory is the token of a hostile principal, which is not an operator; secret is
// the token of the honest one.
const mallory = "mallory-has-a-token-of-her-own"

// besieged is a node under attack, with bounds for the cost of the attack.
type besieged struct {
	*node
	t          testing.TB
	memory     uint64
	goroutines int
}

const (
	// maxGrowth bounds the memory that an attack may cost, with the memory of other
	// tests of the package that run at the same time.
	maxGrowth = 100 << 20
	// maxLogged bounds the lines of the log.
	maxLogged = 300
	// promptly is how long an honest client waits for an answer. A successful attack
	// delays it without end; the bound leaves room for a machine that stalls.
	promptly = time.Minute
)

// besiege serves a System for an attack. Tests that measure memory are not parallel.
func besiege(t testing.TB, change ...func(*remote.Config)) *besieged {
	t.Helper()
	cfg := remote.Config{Tokens: map[string]string{secret: "honest", mallory: "mallory"}, Operators: []string{}}
	for _, c := range change {
		c(&cfg)
	}
	b := &besieged{node: serve(t, cfg), t: t}
	b.honest() // starts workers and connections
	b.memory, b.goroutines = heap(), runtime.NumGoroutine()
	return b
}

// heap returns the bytes of live objects.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first has put into pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// honest asserts that another client can connect and receives answers.
func (b *besieged) honest() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), promptly)
	defer cancel()
	c, err := remote.Dial(ctx, b.server.Address(), nil, remote.DialConfig{Config: remote.Config{Token: secret}, DeadLink: promptly})
	require.NoError(b.t, err)
	defer c.Close()
	for range 20 {
		_, err = c.Stats(ctx, b.topic.Name())
		require.NoError(b.t, err)
	}
}

// bounded asserts the bounds of a running attack.
func (b *besieged) bounded() {
	b.t.Helper()
	grown := int64(heap()) - int64(b.memory) //nolint:gosec // of a machine
	require.Less(b.t, grown, int64(maxGrowth), "bytes")
	require.Less(b.t, strings.Count(strings.Join(b.log.with(""), ""), "\n"), maxLogged, "lines")
}

// over asserts that the node has released all resources of an attack.
func (b *besieged) over() {
	b.t.Helper()
	b.bounded()
	eventually(b.t, func() bool { return runtime.NumGoroutine() <= b.goroutines+5 }, "goroutines")
}

// inParallel runs n attackers at once.
func inParallel(n int, attack func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { attack(i) })
	}
	all.Wait()
}
