package browser_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/dashboard"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	prefix   = "/ops/wakebell"
	patience = 2 * time.Minute // of a whole test, on a busy machine
)

// site is a dashboard on a Redis of its own.
type site struct {
	t      *testing.T
	server *redistest.Server
	rdb    redis.UniversalClient
	client *wakebell.Client
	gates  *gate.Gates
	url    string
}

func serve(t *testing.T, change ...func(*dashboard.Config)) *site {
	t.Helper()
	server, err := redistest.Launch()
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	client, err := wakebell.NewClient(conntest.New(t, rdb, connection.Config{}))
	require.NoError(t, err)
	gates, err := gate.New(conntest.New(t, rdb, connection.Config{}), gate.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, gates.Close()) })
	cfg := dashboard.Config{
		Path:       prefix,
		Writable:   true,
		QueueNames: []wakebelltype.QueueKeys{{Name: "exports"}},
		TraceURL:   "https://traces.example.com/{trace}",
	}
	for _, c := range change {
		c(&cfg)
	}
	d, err := dashboard.New(conntest.WithoutRedis(t, connection.Config{Logger: slog.New(slog.DiscardHandler)}), dashboard.Operators{
		Timers: client, Queues: client.Queues(), Schedules: client.Schedules(), Gates: gates,
	}, cfg)
	require.NoError(t, err)
	web := httptest.NewServer(d)
	t.Cleanup(web.Close)
	t.Cleanup(d.Close)
	return &site{t, server, rdb, client, gates, web.URL + prefix + "/"}
}

// browser is a tab of Chromium that records what goes wrong on its pages.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string
}

// open starts Chromium with a window of this size.
func open(t *testing.T, width, height int) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	require.NoError(t, err, "chromium is not installed: scripts/setup.sh chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.WindowSize(width, height), chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(patience))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.heard)
	b.do(network.Enable(), log.Enable(), runtime.Enable())
	return b
}

func (b *browser) heard(event any) {
	var fault string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		fault = "exception: " + e.ExceptionDetails.Error()
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			fault = fmt.Sprint("console: ", e.Args)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning { // violations of the policy too
			fault = "log: " + e.Entry.Text + " " + e.Entry.URL
		}
	case *network.EventLoadingFailed:
		if !e.Canceled && e.ErrorText != "net::ERR_ABORTED" { // a page that is left ends its stream
			fault = "request: " + e.ErrorText
		}
	}
	if fault != "" {
		b.mu.Lock()
		b.faults = append(b.faults, fault)
		b.mu.Unlock()
	}
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Run(b.ctx, actions...))
}

// faultless fails the test for console errors, violations of the content security
// policy and failed requests.
func (b *browser) faultless(page string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.faults, page)
}

// sees waits until the page contains a text.
func (b *browser) sees(text string) {
	b.t.Helper()
	var body string
	ok := func() bool {
		return chromedp.Run(b.ctx, chromedp.Evaluate(`document.body.innerText`, &body)) == nil && strings.Contains(body, text)
	}
	require.Eventually(b.t, ok, time.Minute, 50*time.Millisecond, "no %q", text)
}

// press moves the focus to the link or button with this text, by the keyboard alone,
// and presses Enter.
func (b *browser) press(text string) {
	b.t.Helper()
	for range 200 {
		var focused string
		b.do(chromedp.KeyEvent("\t"), chromedp.Evaluate(`document.activeElement.textContent.trim()`, &focused))
		if focused == text {
			b.do(chromedp.KeyEvent("\r"))
			return
		}
	}
	require.FailNow(b.t, "the keyboard does not reach "+text)
}

// noRules is the finding that axe-core has checked almost nothing.
const noRules = "no rules ran"

const axeFile = "node_modules/axe-core/axe.min.js"

// axe returns the serious findings of axe-core on the page.
func (b *browser) axe() []string {
	b.t.Helper()
	source, err := os.ReadFile(axeFile)
	require.NoError(b.t, err, "axe-core is not installed: npm install in dashboard/browser")
	var found []string
	// The debugger evaluates it in spite of the content security policy.
	b.do(chromedp.Evaluate(string(source)+";0", nil), chromedp.Evaluate(
		`axe.run().then(r => r.passes.length < 5 ? ["`+noRules+`"] : r.violations.filter(v => v.impact === "serious" || v.impact === "critical")
			.map(v => v.id + ": " + v.nodes.map(n => n.html + " " + n.failureSummary).join(" | ")))`,
		&found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return found
}
