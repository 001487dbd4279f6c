package dashboard

import (
	"bytes"
	"context"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/guard"
	"github.com/wakebell/wakebell/dashboard/internal/show"
	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/internal/ranked"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/wakebelltype"
)

//go:embed templates/*.html
var templateFiles embed.FS

// frame is the data of the layout; Page is that of the page.
type frame struct {
	Title, Section string
	Nav            []navItem
	Who            Principal
	Role           Role
	Writes         bool // the principal may change something
	Token          string
	Live           string // address of the stream of changes and outages; empty: none
	Follows        bool   // the page follows changes
	Outage         *outage
	Read           time.Time // when what is shown was read
	Flash          string    // result of the last change
	Payloads       bool      // payloads are shown as they are, so that they can be edited
	Hidden         bool      // payloads are hidden
	Page           any
}

type navItem struct{ Section, Title, Href string }

func (d *Dashboard) nav() []navItem {
	items := []navItem{{"overview", "Overview", d.link("")}, {"topics", "Topics", d.link("topics")}, {"dead", "Dead letters", d.link("dead")}}
	if d.op.Queues != nil {
		items = append(items, navItem{"queues", "Queues", d.link("queues")})
	}
	if d.op.Schedules != nil {
		items = append(items, navItem{"schedules", "Schedules", d.link("schedules")})
	}
	if d.op.Gates != nil {
		items = append(items, navItem{"gates", "Gates", d.link("gates")})
	}
	return append(items, navItem{"nodes", "Nodes", d.link("nodes")}, navItem{"jobs", "Jobs", d.link("jobs")}, navItem{"audit", "Audit", d.link("audit")}, navItem{"doctor", "Doctor", d.link("doctor")})
}

// parseTemplates returns a template for each page, within the layout.
func (d *Dashboard) parseTemplates() (map[string]*template.Template, error) {
	base, err := template.New("layout.html").Funcs(d.templateFuncs()).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, fmt.Errorf("parse templates: %w", err)
	}
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("list templates: %w", err)
	}
	all := map[string]*template.Template{}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		t, err := base.Clone()
		if err != nil {
			return nil, fmt.Errorf("parse templates: %w", err)
		}
		if all[name], err = t.ParseFS(templateFiles, file); err != nil {
			return nil, fmt.Errorf("parse templates: %w", err)
		}
	}
	return all, nil
}

func (d *Dashboard) templateFuncs() template.FuncMap {
	return template.FuncMap{
		"link": d.link, "asset": func(name string) string { return d.link("assets/"+name, "v", d.assets.version) },
		"text": show.Text, "lines": show.Lines, "short": show.Short, "size": show.Size, "span": show.Span,
		"count": func(n any) (string, error) { return ofInteger(n, show.Count) },
		"things": func(n any, one string) (string, error) {
			return ofInteger(n, func(n int64) string { return show.Things(n, one) })
		},
		"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"when":  when, "local": local, "state": stateOf, "bar": newBar, "node": node, "unattended": attended.Waits, "overdue": overdue, "open": openBreakers, "rate": rate, "late": ranked.Late,
		"only": func(problems bool) string { return map[bool]string{true: "problems"}[problems] },
		"add":  func(a, b int) int { return a + b },
	}
}

// ofInteger formats a number of any integer type: a template does not convert between them,
// and fails while it runs.
func ofInteger(n any, format func(int64) string) (string, error) {
	switch v := reflect.ValueOf(n); {
	case v.CanInt():
		return format(v.Int()), nil
	case v.CanUint():
		return format(int64(v.Uint())), nil
	default:
		return "", fmt.Errorf("number of type %T, want an integer", n)
	}
}

// rate is how many attempts of a topic ended in a minute.
func rate(o wakebelltype.Overview) string {
	r := ranked.Rate(o)
	if r > 0 && r < 10 {
		return strconv.FormatFloat(r, 'f', 1, 64)
	}
	return show.Count(int64(r))
}

// stateOf is the state of a timer as pages show it. It is due if its instant is at most due.
func stateOf(i wakebell.Info, due time.Time) string {
	if i.IsDue(due) {
		return "due"
	}
	return string(i.State)
}

// clock reads the topic anew: its overview tells the clock of Redis, by which timers become due.
func (d *Dashboard) clock(ctx context.Context, topic string) (o wakebelltype.Overview) {
	all, err := d.op.Timers.Overview(ctx, topic)
	if err == nil && len(all) == 1 {
		return all[0]
	}
	o.Err = err
	return o
}

// redisNow returns the present instant by the clock of Redis.
func (d *Dashboard) redisNow(ctx context.Context, topic string, clock wakebelltype.Overview) time.Time {
	return attended.Now(clock, func() (wakebelltype.Throughput, error) { return d.op.Timers.Throughput(ctx, topic, time.Minute) })
}

// states returns stateOf for timers of several topics, and reads the clock of each once.
func (d *Dashboard) states(ctx context.Context) func(topic string, i wakebell.Info) string {
	var mu sync.Mutex
	due := map[string]time.Time{}
	return func(topic string, i wakebell.Info) string {
		mu.Lock()
		defer mu.Unlock()
		if _, known := due[topic]; !known {
			due[topic] = attended.Due(d.clock(ctx, topic))
		}
		return stateOf(i, due[topic])
	}
}

// when writes an instant relative to now, with the absolute one for the mouse. The
// script of the page keeps it current, in the zone of the viewer.
func when(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`,
		t.UTC().Format(time.RFC3339Nano), show.Stamp(t), show.Since(t, time.Now())))
}

func (d *Dashboard) render(r *request, p page) {
	f := frame{
		Title: p.title, Section: p.section, Nav: d.nav(), Who: r.who, Role: r.role, Writes: r.writes(),
		Flash: d.takeFlash(r), Payloads: !d.cfg.HidePayloads && d.cfg.Redact == nil, Hidden: d.cfg.HidePayloads, Page: p.data,
	}
	if r.role != RoleNone {
		f.Outage, f.Read, f.Follows = d.outage(r, p.status), r.readAt(), p.live != ""
		if p.live == "" {
			p.live = watching("redis")
		}
		f.Live = d.cfg.Path + "/live?" + p.live
	}
	if f.Writes {
		f.Token = d.forgery.Token(r.w, r.Request)
	}
	if r.role == RoleNone { // an error before the sign-in says nothing else
		f.Nav = nil
	}
	var out bytes.Buffer
	if err := d.templates[p.template].ExecuteTemplate(&out, "layout", f); err != nil {
		d.log.ErrorContext(r.Context(), "dashboard: template failed", "template", p.template, "err", err)
		http.Error(r.w, "the page cannot be rendered", http.StatusInternalServerError)
		return
	}
	r.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.status != 0 {
		r.w.WriteHeader(p.status)
	}
	_, _ = r.w.Write(out.Bytes()) // an error means that the browser has gone
}

const (
	flashCookie = "wakebell_flash"
	maxFlash    = 1024
)

// setFlash keeps the result of a change for the next page.
func (d *Dashboard) setFlash(r *request, result string) {
	http.SetCookie(r.w, d.flash(r, base64.RawURLEncoding.EncodeToString([]byte(text.Clip(result, maxFlash))), 60))
}

func (d *Dashboard) takeFlash(r *request) string {
	c, err := r.Cookie(flashCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(r.w, d.flash(r, "", -1))
	decoded, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil || len(decoded) > maxFlash {
		return ""
	}
	return show.Text(string(decoded))
}

func (d *Dashboard) flash(r *request, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: flashCookie, Value: value, Path: d.cfg.Path + "/", MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: guard.Encrypted(r.Request),
	}
}
