package incidents

import (
	"context"
	"flag"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/promtest"
	"github.com/wakebell/wakebell/internal/redistest"
)

var (
	run     = flag.Bool("incidents", false, "produce the incidents")
	only    = flag.String("incidents.only", "", "comma-separated incidents to produce; empty: all")
	program = flag.String("incidents.program", "", "the program wakebell; empty: build it")
)

// startLimit bounds the waits before an incident.
const startLimit = 2 * time.Minute

// world is what is operated: a Redis, nodes and a beat with their metrics, a dashboard and
// a Prometheus.
type world struct {
	*testing.T
	path  string // of the program
	redis *redistest.Server

	nodes []*process // of the topic mail
	beat  *process
	dash  string // address of the dashboard
	prom  *promtest.Server
}

// process is a running program.
type process struct {
	cmd     *exec.Cmd
	metrics string // address
	output  *redistest.Output
}

// newWorld starts two nodes for the topic mail, a beat with a schedule, a dashboard and a
// Prometheus, and waits until no alert is active.
func newWorld(t *testing.T, path string) *world {
	w := &world{T: t, path: path, redis: redistest.Start(t, "--appendonly", "yes"), prom: promtest.Start(t, hastened(t))}
	w.must("schedules", "put", "hourly", "-t", "mail", "--every", "1h")
	w.must("schedule", "-t", "mail", "--id", "later", "--in", "2h")
	for range 2 {
		w.nodes = append(w.nodes, w.node("-t", "mail", "--exec", "exit 0"))
	}
	w.beat = w.measured("beat")
	w.dash = redistest.Address(t)
	w.start("dash", "--listen", w.dash)
	w.await("no alert is active, and all is scraped", startLimit, func() bool {
		return len(w.prom.Query("sum(up) == 3")) > 0 && len(w.prom.Query("max(wakebell_beats) == 1")) > 0 && len(w.prom.Alerts()) == 0
	})
	return w
}

// node starts a node that exports metrics.
func (w *world) node(args ...string) *process {
	return w.measured(append([]string{"node"}, args...)...)
}

// measured starts the program with metrics, which the Prometheus scrapes.
func (w *world) measured(args ...string) *process {
	address := redistest.Address(w)
	p := w.start(append(args, "--metrics", address)...)
	p.metrics = address
	w.prom.Scrape(address)
	return p
}

func (w *world) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, w.path, append(args, "--redis", "redis://"+w.redis.Addr)...)
	cmd.SysProcAttr = redistest.ChildAttr()
	return cmd
}

// start starts the program. The end of the test kills it.
func (w *world) start(args ...string) *process {
	w.Helper()
	p := &process{cmd: w.command(context.Background(), args...), output: &redistest.Output{}}
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	require.NoError(w, p.cmd.Start())
	w.Cleanup(func() {
		p.kill()
		if w.Failed() {
			w.Logf("%s:\n%s", strings.Join(args, " "), p.output)
		}
	})
	return p
}

// kill ends a process as a power failure does.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // it may have ended already
	_ = p.cmd.Wait()                          // it was killed
}

// call runs a command and returns what it printed.
func (w *world) call(args ...string) string {
	ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
	defer cancel()
	out, _ := w.command(ctx, args...).CombinedOutput() // an incident makes commands fail
	return string(out)
}

// must runs a command that succeeds.
func (w *world) must(args ...string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), startLimit)
	defer cancel()
	out, err := w.command(ctx, args...).CombinedOutput()
	require.NoError(w, err, "%v: %s", args, out)
}

// redisCommand runs a command of Redis.
func (w *world) redisCommand(args ...any) {
	w.Helper()
	require.NoError(w, w.redis.Client(w).Do(w.Context(), args...).Err(), "%v", args)
}

// page returns a page of the dashboard.
func (w *world) page(path string) string {
	ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.dash+"/"+path, http.NoBody)
	require.NoError(w, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(response.Body) // a page that is cut says less
	return response.Status + "\n" + string(body)
}

// await waits for a condition.
func (w *world) await(what string, limit time.Duration, condition func() bool) {
	w.Helper()
	require.Eventually(w, condition, limit, 250*time.Millisecond, what)
}

// built builds the program once, and stamped once more, as another version: that of the commit.
var (
	built = sync.OnceValues(func() (string, error) {
		if *program != "" {
			return filepath.Abs(*program)
		}
		return build("wakebell", "-buildvcs=false")
	})
	stamped = sync.OnceValues(func() (string, error) { return build("stamped", "-buildvcs=true") })
)

// build builds the program; an error comes with what the compiler printed.
func build(name, stamp string) (string, error) {
	path := filepath.Join(dir, name)
	out, err := exec.Command("go", "build", stamp, "-o", path, "github.com/wakebell/wakebell/cmd/wakebell").CombinedOutput()
	if err != nil {
		return string(out), err
	}
	return path, nil
}
