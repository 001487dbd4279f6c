//go:build !race

package bounds

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

var (
	measure = flag.Bool("bounds.measure", false, "measure the scripts at a million timers, and write the table of docs/scale.md")
	rounds  = flag.Int("bounds.rounds", 7, "how often each call is measured")
)

func TestMain(m *testing.M) { redistest.Main(m) }

const (
	// mostCommands is how many commands a call of a script may make within Redis: fewer than
	// Redis carries out in 10 ms.
	mostCommands = 15_000
	// bound is for how long a script may block Redis.
	bound = 10 * time.Millisecond
)

// groups are the rows, by what they need in Redis. Each has a server of its own.
var groups = []struct {
	name string
	run  func(b *bench)
}{
	{"timers", timersRows},
	{"dead letters", deadRows},
	{"keys", keysRows},
	{"limits", limitsRows},
	{"shards", shardsRows},
	{"queue", queueRows},
	{"dead letters of a queue", queueDeadRows},
	{"gates", gatesRows},
	{"recurring", recurringRows},
	{"records", recordsRows},
}

// TestEveryScriptIsBounded runs every script at its largest settings. A script that no row
// runs fails it.
func TestEveryScriptIsBounded(t *testing.T) {
	t.Parallel()
	all := &samples{of: map[string]*sample{}}
	t.Run("groups", func(t *testing.T) {
		for _, group := range groups {
			t.Run(group.name, func(t *testing.T) {
				if !*measure { // measurements would disturb each other
					t.Parallel()
				}
				group.run(newBench(t, all))
			})
		}
	})
	if t.Failed() {
		return
	}
	for _, s := range scripts.All() {
		found := all.of[s.Script.Hash()]
		if found == nil {
			t.Errorf("no row runs %s with %q: add a call with its largest legal settings to a row of redisops/internal/bounds", s.Name, s.Parts)
			continue
		}
		if found.commands > mostCommands {
			t.Errorf("%s, %s: %d commands in one call, at most %d", s.Name, found.largest, found.commands, mostCommands)
		}
	}
	if *measure {
		all.report(t)
	}
}

// bench is the Redis of a group, and what measures the scripts there.
type bench struct {
	*testing.T
	rdb   *redis.Client // whose calls are measured
	other *redis.Client // of the same server, to load data
	db1   *redis.Client // another database, whose calls are measured too
	probe *probe
	store *timers.Timers

	many int // timers, messages and dead letters of a topic
	tens int // a tenth of that
}

func newBench(t *testing.T, all *samples) *bench {
	t.Helper()
	server := redistest.Start(t, "--save", "", "--appendonly", "no")
	b := &bench{T: t, other: server.Client(t), many: 20_000}
	if *measure {
		b.many = 1_000_000
	}
	b.tens = b.many / 10
	b.probe = newProbe(t, server, all)
	b.rdb = server.Client(t, slowly)
	b.rdb.AddHook(b.probe)
	b.db1 = server.Client(t, slowly, func(o *redis.Options) { o.DB = 1 })
	b.db1.AddHook(b.probe)
	b.store = b.timers(b.rdb)
	for _, s := range scripts.All() { // so that EVALSHA runs each
		require.NoError(t, s.Script.Load(t.Context(), b.other).Err())
	}
	return b
}

// slowly lets a client wait for a script that takes long: it is to be reported.
func slowly(o *redis.Options) { o.ReadTimeout, o.MaxRetries = 5*time.Minute, -1 }

func (b *bench) timers(rdb redis.UniversalClient) *timers.Timers {
	b.Helper()
	s, err := timers.New(rdb, wakebelltype.Keys{})
	require.NoError(b, err)
	s.NoCoalescing = true
	return s
}

// measured makes calls as often as they are to be measured. What they say describes them.
func (b *bench) measured(what string, call func(round int)) {
	b.Helper()
	for round := range b.rounds() {
		b.once(what, func() { call(round) })
	}
}

// once makes a call that is measured.
func (b *bench) once(what string, call func()) {
	b.Helper()
	b.probe.begin(what)
	defer b.probe.end()
	call()
}

func (b *bench) rounds() int {
	if *measure {
		return *rounds
	}
	return 2
}

func (b *bench) must(err error) {
	b.Helper()
	require.NoError(b, err)
}

// text returns a payload.
func text(n int) []byte { return []byte(strings.Repeat("x", n)) }

// ids returns numbered ids.
func ids(prefix string, from, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%010d", prefix, from+i)
	}
	return all
}

// inParts makes a call for parts of a list.
func inParts[T any](list []T, n int, call func(part []T)) {
	for part := range slices.Chunk(list, n) {
		call(part)
	}
}
