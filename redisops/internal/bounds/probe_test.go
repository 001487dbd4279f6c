//go:build !race

package bounds

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// samples has what was measured of each script, by its hash.
type samples struct {
	mu sync.Mutex
	of map[string]*sample
}

// sample is what was measured of a script.
type sample struct {
	took     map[string][]time.Duration // by what the call did
	commands int                        // the most within one call
	largest  string                     // what that call did
}

// probe is a hook of a client that measures the scripts which it runs. Unlike SLOWLOG, which
// includes the time that other processes use on a busy machine, it counts the CPU time of
// Redis's main thread.
type probe struct {
	t    testing.TB
	info *redis.Client
	all  *samples
	base time.Duration // of a probe without a script

	mu       sync.Mutex
	what     string // is measured; empty: nothing is
	slowness float64
}

func newProbe(t testing.TB, server *redistest.Server, all *samples) *probe {
	t.Helper()
	p := &probe{t: t, info: server.Client(t), all: all}
	var took []time.Duration
	for range 21 {
		from := p.read(t.Context())
		took = append(took, p.read(t.Context()).cpu-from.cpu)
	}
	slices.Sort(took)
	p.base = took[len(took)/2]
	return p
}

func (p *probe) begin(what string) {
	p.slowness = 1
	if *measure {
		p.slowness = max(1, redistest.Slowness(p.t, p.info))
	}
	p.what = what
}

func (p *probe) end() { p.what = "" }

// reading is what Redis has done so far.
type reading struct {
	cpu      time.Duration
	commands int
}

var (
	cpuOf   = regexp.MustCompile(`used_cpu_(?:user|sys)_main_thread:([\d.]+)`)
	callsOf = regexp.MustCompile(`cmdstat_[^:]+:calls=(\d+)`)
)

// read reads what Redis has done: its time if that is to be measured, and else the commands.
func (p *probe) read(ctx context.Context) (r reading) {
	section := "commandstats"
	if *measure {
		section = "cpu"
	}
	text, err := p.info.Info(context.WithoutCancel(ctx), section).Result()
	if err != nil {
		p.t.Errorf("info: %v", err)
	}
	for _, m := range cpuOf.FindAllStringSubmatch(text, -1) {
		seconds, err := strconv.ParseFloat(m[1], 64)
		require.NoError(p.t, err)
		r.cpu += time.Duration(seconds * float64(time.Second))
	}
	for _, m := range callsOf.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		require.NoError(p.t, err)
		r.commands += n
	}
	return r
}

func (p *probe) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *probe) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return p.around(ctx, cmds, func() error { return next(ctx, cmds) })
	}
}

func (p *probe) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return p.around(ctx, []redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

// plain begins the names, in place of hashes, of calls without a script.
const plain = "command "

// around measures commands, one call after the other. What a pipeline takes counts for each
// of its scripts.
func (p *probe) around(ctx context.Context, cmds []redis.Cmder, call func() error) error {
	var hashes []string
	for _, cmd := range cmds {
		switch name, _ := cmd.Args()[0].(string); strings.ToLower(name) {
		case "evalsha":
			hash, _ := cmd.Args()[1].(string)
			hashes = append(hashes, hash)
		case "eval":
			text, _ := cmd.Args()[1].(string)
			hashes = append(hashes, redis.NewScript(text).Hash())
		}
	}
	opens := []string{"hello", "auth", "select", "client", "readonly"} // within another call
	if p.what == "" || len(hashes) == 0 && slices.Contains(opens, cmds[0].Name()) {
		return call()
	}
	if len(hashes) == 0 {
		hashes = []string{plain + cmds[0].Name()}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.read(ctx)
	err := call()
	after := p.read(ctx)
	for _, hash := range hashes {
		p.all.add(hash, p.what, time.Duration(float64(after.cpu-before.cpu-p.base)/p.slowness), after.commands-before.commands)
	}
	return err
}

func (s *samples) add(hash, what string, took time.Duration, commands int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.of[hash]
	if found == nil {
		found = &sample{took: map[string][]time.Duration{}}
		s.of[hash] = found
	}
	found.took[what] = append(found.took[what], took)
	if commands > found.commands {
		found.commands, found.largest = commands, what
	}
}

// worst returns what a script took longest for, by the median, and the median and the
// maximum of that.
func (s *sample) worst() (what string, median, most time.Duration, runs int) {
	for name, list := range s.took {
		slices.Sort(list)
		if middle := list[len(list)/2]; what == "" || middle > median {
			what, median, most, runs = name, middle, list[len(list)-1], len(list)
		}
	}
	return what, median, most, runs
}

const (
	tableBegins = "<!-- script bounds: written by make script-bounds -->\n"
	tableEnds   = "<!-- end of script bounds -->\n"
)

// report writes the table, and fails for scripts that take too long.
func (s *samples) report(t *testing.T) {
	t.Helper()
	type line struct {
		name, what   string
		median, most time.Duration
		runs         int
	}
	worst := map[string]line{}
	for _, script := range scripts.All() { // of the variants of a script the slowest
		what, median, most, runs := s.of[script.Script.Hash()].worst()
		if found, ok := worst[script.Name]; !ok || median > found.median {
			worst[script.Name] = line{script.Name, what, median, most, runs}
		}
	}
	for name, sample := range s.of {
		if what, median, _, _ := sample.worst(); strings.HasPrefix(name, plain) && median > bound {
			t.Errorf("the %s blocks Redis for %v: %s", name, median, what)
		}
	}
	var lines []line
	for _, l := range worst {
		lines = append(lines, l)
		if l.median > bound {
			t.Errorf("%s blocks Redis for %v: %s", l.name, l.median, l.what)
		}
	}
	slices.SortFunc(lines, func(a, b line) int {
		return int(b.median.Round(10*time.Microsecond)-a.median.Round(10*time.Microsecond)) + strings.Compare(a.name, b.name)
	})
	var all, page strings.Builder // the page leaves out what no reader has to know
	var quick int
	const head = "| script | its slowest call | median, ms | longest, ms | calls |\n|---|---|---|---|---|\n"
	all.WriteString(head)
	page.WriteString(head)
	for _, l := range lines {
		row := fmt.Sprintf("| `%s` | %s | %.2f | %.2f | %d |\n", l.name, l.what, l.median.Seconds()*1e3, l.most.Seconds()*1e3, l.runs)
		all.WriteString(row)
		if l.median >= 2*time.Millisecond {
			page.WriteString(row)
		} else {
			quick++
		}
	}
	t.Log("\n" + all.String())
	fmt.Fprintf(&page, "\nThe other %d scripts take less than 2 ms.\n", quick)
	require.NoError(t, writeTable(filepath.Join("..", "..", "..", "docs", "scale.md"), page.String()))
}

// writeTable replaces the table of a page.
func writeTable(page, table string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		return errors.New(page + " does not say where the table goes")
	}
	return os.WriteFile(page, []byte(before+tableBegins+"\n"+table+"\n"+tableEnds+after), 0o644) //nolint:gosec // a page of the documentation
}
