package dashboard

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/show"
	payloads "github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	timersPage = 50
	// maxScan bounds how many timers one page looks at for a prefix of ids.
	maxScan = 2000
)

// timerQuery selects timers of a topic.
type timerQuery struct {
	topic, prefix, after string
	running              bool
	within               time.Duration // due within; 0: any
	limit                int
}

type timersData struct {
	Topic, Prefix, Within string
	Running               bool
	Rows                  []wakebell.Info
	Next, First           string
	Scanned               int // timers that were looked at, if the scan ended at its bound; else 0
}

func (d *Dashboard) readTimers(ctx context.Context, q timerQuery) (timersData, error) {
	data := timersData{Topic: q.topic, Prefix: q.prefix, Running: q.running}
	filter := wakebell.Filter{Running: q.running}
	if q.within > 0 {
		filter.DueBefore = time.Now().Add(q.within)
	}
	bound := q.limit + 1
	if q.prefix != "" {
		bound = maxScan + 1
	}
	seen, last := 0, ""
	for info, err := range d.op.Timers.List(ctx, q.topic, filter, wakebelltype.Page{After: q.after, Limit: bound}) {
		if err != nil {
			return data, fmt.Errorf("list timers: %w", err)
		}
		if len(data.Rows) == q.limit || seen == maxScan {
			data.Next = last
			break
		}
		seen, last = seen+1, info.Cursor
		if strings.HasPrefix(info.ID, q.prefix) {
			data.Rows = append(data.Rows, info)
		}
	}
	if seen == maxScan && len(data.Rows) < q.limit {
		data.Scanned = seen
	}
	return data, nil
}

// windows are the choices of the filter by due time.
var windows = map[string]time.Duration{"1m": time.Minute, "1h": time.Hour, "24h": 24 * time.Hour, "168h": 7 * 24 * time.Hour}

func (d *Dashboard) timersPage(ctx context.Context, r *request) (page, error) {
	topic, err := r.required("topic")
	if err != nil {
		return page{}, err
	}
	within, running := r.get("within"), r.get("running")
	q := timerQuery{
		topic: topic, prefix: r.get("prefix"), after: r.get("after"), running: running != "",
		within: windows[within], limit: timersPage,
	}
	data, err := d.readTimers(ctx, q)
	if err != nil {
		return page{}, err
	}
	data.Within = within
	address := func(after string) string {
		return d.link("timers", "topic", topic, "prefix", q.prefix, "running", running, "within", within, "after", after)
	}
	if data.Next != "" {
		data.Next = address(data.Next)
	}
	if q.after != "" {
		data.First = address("")
	}
	title := "Timers of " + topic
	return page{template: "timers", title: title, section: "topics", live: watching("topic", "name", topic), data: data}, nil
}

// payload is a body with its headers, as a page shows it.
type payload struct {
	Hidden  bool
	Body    show.Body
	Headers []header

	ContentType, CorrelationID, ReplyTo string
	Encoding                            string // of the stored body; empty: none

	Trace    string // id of the trace; empty: none
	TraceURL string
}

type header struct{ Key, Value string }

// newPayload applies what the configuration says about payloads.
func (d *Dashboard) newPayload(ctx context.Context, p Payload) payload {
	out := payload{Hidden: d.cfg.HidePayloads}
	if !out.Hidden {
		p.Content, out.Encoding = d.decoded(ctx, p)
	}
	c := p.Content
	out.Trace = traceOf(c)
	if out.Trace != "" && d.cfg.TraceURL != "" {
		out.TraceURL = strings.ReplaceAll(d.cfg.TraceURL, "{trace}", out.Trace)
	}
	if d.cfg.Redact != nil {
		c = d.cfg.Redact(p)
	}
	out.ContentType, out.CorrelationID, out.ReplyTo = c.ContentType, c.CorrelationID, c.ReplyTo
	for key, value := range c.Headers.Map() {
		if out.Hidden {
			value = ""
		}
		out.Headers = append(out.Headers, header{key, value})
	}
	sortHeaders(out.Headers)
	if !out.Hidden {
		out.Body = show.NewBody(c.Body, c.ContentType)
	} else {
		out.Body = show.Body{Size: len(c.Body)}
	}
	return out
}

// decoded returns the content of a payload with its body decoded, and how it was encoded.
func (d *Dashboard) decoded(ctx context.Context, p Payload) (c wakebell.Content, encoding string) {
	c = p.Content
	encoding = payloads.Description(c.Headers, c.Body)
	if encoding == "" || d.cfg.Payloads == nil {
		return c, encoding
	}
	plain, err := d.cfg.Payloads.Decode(ctx, payloads.Encoded{
		Topic: p.Topic + p.Queue, ID: p.ID, Headers: c.Headers, Body: c.Body, ContentType: c.ContentType, // one of Topic and Queue is empty
	})
	if errors.Is(err, payloads.ErrUnknownCodec) { // the encoding names it
		return c, encoding
	}
	if err != nil {
		return c, encoding + ": " + err.Error()
	}
	c.Body, c.ContentType, c.Headers = plain.Body, plain.ContentType, plain.Headers
	return c, encoding
}

var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}`)

// traceOf returns the trace id of the W3C header traceparent.
func traceOf(c wakebell.Content) string {
	found := traceparent.FindStringSubmatch(c.Headers.Map()["traceparent"])
	if found == nil {
		return ""
	}
	return found[1]
}

type timerData struct {
	Topic   string
	Info    wakebell.Info
	Payload payload
	Retries bool // it was delivered before
	Past    attemptsData
}

func (d *Dashboard) timerPage(ctx context.Context, r *request) (page, error) {
	topic, err := r.required("topic")
	if err != nil {
		return page{}, err
	}
	id, err := r.required("id")
	if err != nil {
		return page{}, err
	}
	info, content, err := d.op.Timers.Get(ctx, topic, id)
	if err != nil {
		return d.gonePage(ctx, topic, id, fmt.Errorf("timer %s of topic %s: %w", show.Short(64, id), show.Short(64, topic), err))
	}
	past := attemptsData{Topic: topic, ID: id}
	past.Attempts, past.Err = d.attempts(ctx, topic, id)
	return page{
		template: "timer", title: "Timer " + id, section: "topics", live: watching("timer", "topic", topic, "id", id),
		data: timerData{topic, info, d.newPayload(ctx, Payload{Topic: topic, ID: id, Content: content}), info.Attempts > 0, past},
	}, nil
}

// searchPage goes to what has the name: a topic, a schedule, a gate, a queue, or a
// timer as "topic id". If several have it, it lists them.
func (d *Dashboard) searchPage(ctx context.Context, r *request) (page, error) {
	text := strings.TrimSpace(r.get("q"))
	data := searchData{Text: text}
	if text != "" {
		data.Found = d.find(ctx, text)
	}
	if len(data.Found) == 1 && data.Found[0].Exact {
		r.w.Header().Set("Location", data.Found[0].Href)
		return page{template: "search", title: "Search", status: 303, data: data}, nil
	}
	return page{template: "search", title: "Search", data: data}, nil
}

type searchData struct {
	Text  string
	Found []found
}

type found struct {
	Kind, Name, Href string
	Exact            bool
}

const (
	maxFound = 50
	// maxLookups bounds the topics in which a timer is looked for by its id alone.
	maxLookups = 50
)

func (d *Dashboard) find(ctx context.Context, text string) (all []found) {
	names, _ := d.readNames(ctx) // without them the other kinds are found
	for _, name := range names {
		if strings.Contains(name, text) && len(all) < maxFound {
			all = append(all, found{"topic", name, d.link("topic", "name", name), name == text})
		}
	}
	for _, name := range names[:min(len(names), maxLookups)] {
		all = d.findTimer(ctx, all, name, text)
	}
	if topic, id, ok := strings.Cut(text, " "); ok {
		all = d.findTimer(ctx, all, topic, strings.TrimSpace(id))
	}
	if d.op.Schedules != nil {
		if _, err := d.op.Schedules.Get(ctx, text); err == nil {
			all = append(all, found{"recurring schedule", text, d.link("schedule", "name", text), true})
		}
	}
	if d.op.Gates != nil {
		if g, err := d.op.Gates.Show(ctx, text); err == nil && g.LastFence > 0 {
			all = append(all, found{"gate", text, d.link("gate", "name", text), true})
		}
	}
	if d.op.Queues != nil {
		s, err := d.op.Queues.Stats(ctx, d.queueKeys(text))
		if err == nil && s.Pending+s.Processing+s.Completed+s.Failed+s.Dead > 0 {
			all = append(all, found{"queue", text, d.link("queue", "name", text), true})
		}
	}
	return all
}

func (d *Dashboard) findTimer(ctx context.Context, all []found, topic, id string) []found {
	if topic == "" || id == "" || len(all) >= maxFound {
		return all
	}
	if _, _, err := d.op.Timers.Get(ctx, topic, id); err != nil {
		return all
	}
	return append(all, found{"timer of " + topic, id, d.link("timer", "topic", topic, "id", id), true})
}
