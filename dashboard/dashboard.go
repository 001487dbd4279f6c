// Package dashboard serves web pages on which operators watch and change topics,
// timers, dead letters, queues, recurring schedules and gates.
//
// A dashboard is an http.Handler on the interfaces that operators have, so it works
// with Redis directly and through a node:
//
//	client, err := wakebell.NewClient(conn)
//	d, err := dashboard.New(conn, dashboard.Operators{
//		Timers: client, Queues: client.Queues(), Schedules: client.Schedules(), Gates: gates,
//	}, dashboard.Config{Path: "/wakebell"})
//	http.Handle("/wakebell/", d)
//
// Pages are rendered by the server and can be read without JavaScript. With it, they
// follow changes. By default only this machine can read, and nothing can be changed;
// see Config. Docs: docs/dashboard.md.
package dashboard

import (
	"context"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	slashes "path"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/dashboard/internal/cluster"
	"github.com/wakebell/wakebell/dashboard/internal/guard"
	"github.com/wakebell/wakebell/dashboard/internal/jobs"
	"github.com/wakebell/wakebell/dashboard/internal/live"
	"github.com/wakebell/wakebell/dashboard/internal/memo"
	"github.com/wakebell/wakebell/dashboard/internal/pulse"
	"github.com/wakebell/wakebell/dashboard/internal/roster"
	"github.com/wakebell/wakebell/forecast"
	"github.com/wakebell/wakebell/internal/opened"
	payloads "github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// probeEvery is how often a watched page is checked for changes.
	probeEvery = time.Second
	// maxStreams bounds the browsers that follow changes; others reload.
	maxStreams = 256
	// viewerStreams bounds those of one principal.
	viewerStreams = maxStreams / 4
	// maxForm bounds a request body, in bytes.
	maxForm = 4 << 20
	// readLimit bounds the reads of one page, and callLimit one change.
	readLimit = 10 * time.Second
	callLimit = 30 * time.Second
)

// Dashboard is an http.Handler. Close it when the server shuts down.
type Dashboard struct {
	op     Operators
	cfg    Config
	prefix string // of topics in Redis, which Topics returns and the calls do not take
	log    *slog.Logger
	chain  *payloads.Chain // nil: bodies are shown as they are stored

	mux       *http.ServeMux
	templates map[string]*template.Template
	assets    assets
	forgery   *guard.Forgery
	failures  guard.Failures
	actions   map[string]action

	end   context.CancelFunc // of the reads of caches
	hub   *live.Hub
	jobs  jobs.Jobs
	feeds feeds
	pulse *pulse.Pulse

	names  *memo.Cache[knownTopics]
	totals *memo.Cache[*cluster.Counts]
	topics *memo.Cache[[]wakebelltype.Overview]
	marks  *memo.Cache[string]
	doctor *memo.Cache[[]wakebelltype.Finding]
	past   *memo.Cache[wakebelltype.Throughput]
	future *memo.Cache[forecast.Forecast]
	sums   *memo.Cache[allPast]
	queues *memo.Cache[[]queueRow]
	roster *roster.Roster
	listed sync.Map // keys of the queues that Redis lists, by name
}

// New returns a dashboard that logs to the Logger of conn, and shows bodies decoded by its
// Payloads; without them, pages say how a body is encoded. conn may be nil for the defaults,
// and needs no Redis: all reads and changes are calls of operators. New calls nothing yet.
// Errors wrap wakebell.ErrInvalid.
func New(conn *connection.Connection, operators Operators, cfg Config) (*Dashboard, error) {
	on, err := opened.Default((*opened.Handle)(conn))
	if err != nil {
		return nil, err
	}
	if operators.Timers == nil {
		return nil, fmt.Errorf("%w: Operators.Timers: nil", wakebell.ErrInvalid)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Path = strings.TrimRight(cfg.Path, "/")
	forgery, err := guard.NewForgery(cfg.Path, cfg.TrustedOrigins)
	if err != nil {
		return nil, err // Validate has checked the origins
	}
	life, end := context.WithCancel(context.Background()) //nolint:forbidigo // ended by Close
	d := &Dashboard{
		end: end,
		op:  operators, cfg: cfg, log: on.Logger, chain: on.Payloads, forgery: forgery, hub: live.New(probeEvery, maxStreams, viewerStreams),
		names:  memo.New[knownTopics](life, 2*time.Second, readLimit),
		totals: memo.New[*cluster.Counts](life, 2*time.Second, time.Minute),
		topics: memo.New[[]wakebelltype.Overview](life, 500*time.Millisecond, readLimit),
		marks:  memo.New[string](life, 500*time.Millisecond, readLimit),
		doctor: memo.New[[]wakebelltype.Finding](life, 5*time.Second, time.Minute),
		past:   memo.New[wakebelltype.Throughput](life, 5*time.Second, readLimit),
		future: memo.New[forecast.Forecast](life, 30*time.Second, time.Minute),
		sums:   memo.New[allPast](life, 5*time.Second, time.Minute),
		queues: memo.New[[]queueRow](life, time.Second, readLimit),
		roster: roster.New(operators.Timers.AskNodes),
	}
	if p, ok := operators.Timers.(interface{ Prefix() string }); ok {
		d.prefix = p.Prefix()
	}
	d.feeds.tail, d.feeds.left, d.feeds.prefix = operators.Timers.Tail, d.roster.Left, d.prefix
	d.pulse = pulse.New(d.answers)
	if d.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if d.templates, err = d.parseTemplates(); err != nil {
		return nil, err
	}
	d.actions = d.allActions()
	d.routes()
	return d, nil
}

// Close stops the jobs and reads of this dashboard and ends the streams of browsers. Register
// it with http.Server.RegisterOnShutdown: Shutdown waits for the streams.
func (d *Dashboard) Close() {
	d.hub.Close()
	d.feeds.close()
	d.jobs.Close()
	d.end()
}

func (d *Dashboard) routes() {
	d.mux = http.NewServeMux()
	d.page("GET /{$}", d.overviewPage)
	d.page("GET /topics", d.topicsPage)
	d.page("GET /topic", d.topicPage)
	d.page("GET /timers", d.timersPage)
	d.page("GET /timer", d.timerPage)
	d.page("GET /dead", d.deadPage)
	d.page("GET /letter", d.letterPage)
	d.page("GET /nodes", d.nodesPage)
	d.page("GET /doctor", d.doctorPage)
	d.page("GET /audit", d.auditPage)
	d.page("GET /jobs", d.jobsPage)
	d.page("GET /job", d.jobPage)
	d.page("GET /search", d.searchPage)
	if d.op.Queues != nil {
		d.page("GET /queues", d.queuesPage)
		d.page("GET /queue", d.queuePage)
	}
	if d.op.Schedules != nil {
		d.page("GET /schedules", d.schedulesPage)
		d.page("GET /schedule", d.schedulePage)
	}
	if d.op.Gates != nil {
		d.page("GET /gates", d.gatesPage)
		d.page("GET /gate", d.gatePage)
	}
	d.mux.HandleFunc("GET /do/{action}", d.signedIn(d.ask))
	d.mux.HandleFunc("POST /do/{action}", d.signedIn(d.change))
	d.mux.HandleFunc("GET /export/dead", d.signedIn(d.exportDead))
	d.mux.HandleFunc("GET /live", d.signedIn(d.stream))
	d.mux.HandleFunc("GET /assets/{file}", d.assets.serve)
}

// ServeHTTP serves the pages, with or without Config.Path before the path.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	guard.SetHeaders(w.Header())
	path := r.URL.Path
	if rest, ok := strings.CutPrefix(path, d.cfg.Path); ok && (rest == "" || rest[0] == '/') {
		path = rest
	}
	if path == "" {
		http.Redirect(w, r, d.cfg.Path+"/", http.StatusSeeOther)
		return
	}
	if path != r.URL.Path {
		r2 := *r
		u := *r.URL
		u.Path, u.RawPath = path, ""
		r2.URL = &u
		r = &r2
	}
	// The mux would redirect an unclean path to one without the prefix.
	if _, pattern := d.mux.Handler(r); pattern == "" || slashes.Clean(path) != path {
		d.signedIn(d.unknown)(w, r)
		return
	}
	d.mux.ServeHTTP(w, r)
}
