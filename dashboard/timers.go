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
	"github.com/wakebell/wakebell/explain"
	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/internal/bodytext"
	payloads "github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	timersPage = 50
	// maxScan bounds how many timers one page looks at for a prefix of ids.
	maxScan = 2000
	// maxContents bounds how many timers one page reads for a text in their contents.
	maxContents = 300
)

// timerQuery selects timers of a topic.
type timerQuery struct {
	topic, prefix, after string
	text                 string // in a header or the body; empty: any
	running              bool
	within               time.Duration // due within; 0: any
	limit                int
}

type timersData struct {
	Topic, Prefix, Within string
	Text                  string
	Running               bool
	Rows                  []wakebell.Info
	Due                   time.Time // up to which they are due
	Next, First           string
	Scanned               int // timers that were looked at, if the scan ended at its bound; else 0
}

func (d *Dashboard) readTimers(ctx context.Context, q timerQuery) (timersData, error) {
	data := timersData{Topic: q.topic, Prefix: q.prefix, Text: q.text, Running: q.running}
	if err := d.searchable(q.text); err != nil {
		return data, err
	}
	filter := wakebell.Filter{Running: q.running}
	if !q.running || q.within > 0 {
		clock := d.clock(ctx, q.topic)
		if data.Due = attended.Due(clock); q.within > 0 {
			filter.DueBefore = d.redisNow(ctx, q.topic, clock).Add(q.within)
		}
	}
	most := maxScan
	if q.text != "" {
		most = maxContents
	}
	bound := q.limit + 1
	if q.prefix != "" || q.text != "" {
		bound = most + 1
	}
	seen, last := 0, ""
	for info, err := range d.op.Timers.List(ctx, q.topic, filter, wakebelltype.Page{After: q.after, Limit: bound}) {
		if err != nil {
			return data, fmt.Errorf("list timers: %w", err)
		}
		if len(data.Rows) == q.limit || seen == most {
			data.Next = last
			break
		}
		seen, last = seen+1, info.Cursor
		matches, err := d.matches(ctx, q, info.ID)
		if err != nil {
			return data, err
		}
		if matches {
			data.Rows = append(data.Rows, info)
		}
	}
	if seen == most && len(data.Rows) < q.limit {
		data.Scanned = seen
	}
	return data, nil
}

// searchable refuses to look for a text in payloads that are not shown: the answer would
// tell what is in them.
func (d *Dashboard) searchable(text string) error {
	if text != "" && (d.cfg.HidePayloads || d.cfg.Redact != nil) {
		return fmt.Errorf("%w: payloads are hidden or redacted here, so they cannot be searched", wakebell.ErrForbidden)
	}
	return nil
}

// matches reports whether a timer has the prefix and the text of a query. A timer that
// is gone or too large to be read does not match a text.
func (d *Dashboard) matches(ctx context.Context, q timerQuery, id string) (bool, error) {
	if !strings.HasPrefix(id, q.prefix) || q.text == "" {
		return strings.HasPrefix(id, q.prefix), nil
	}
	_, content, err := d.op.Timers.Get(ctx, q.topic, id)
	switch {
	case errors.Is(err, wakebell.ErrNotFound), errors.Is(err, wakebell.ErrTooLarge):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read timer %s: %w", show.Short(64, id), err)
	}
	content, _ = d.decoded(ctx, Payload{Topic: q.topic, ID: id, Content: content})
	for _, h := range content.Headers {
		if strings.Contains(h.Key, q.text) || strings.Contains(h.Value, q.text) {
			return true, nil
		}
	}
	return strings.Contains(string(content.Body), q.text), nil
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
		topic: topic, prefix: r.get("prefix"), text: r.get("text"), after: r.get("after"), running: running != "",
		within: windows[within], limit: timersPage,
	}
	data, err := d.readTimers(ctx, q)
	if err != nil {
		return page{}, err
	}
	data.Within = within
	address := func(after string) string {
		return d.link("timers", "topic", topic, "prefix", q.prefix, "text", q.text, "running", running, "within", within, "after", after)
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
	Unread  error // why it is not shown at all; nil: it was read
	Hidden  bool
	Body    show.Body
	Headers []header

	ContentType, CorrelationID, ReplyTo string
	Encoding                            string // of the stored body; empty: none

	Trace    string // id of the trace; empty: none
	TraceURL string
}

type header struct{ Key, Value string }

// newPayload applies what the configuration says about payloads. It shows at most so many
// bytes of the body.
func (d *Dashboard) newPayload(ctx context.Context, p Payload, shown int) payload {
	out := payload{Hidden: d.cfg.HidePayloads}
	if !out.Hidden {
		p.Content, out.Encoding = d.decoded(ctx, p)
	}
	c := p.Content
	if d.cfg.Redact != nil {
		c = d.cfg.Redact(p)
	}
	out.Trace = traceOf(c)
	if out.Trace != "" && d.cfg.TraceURL != "" {
		out.TraceURL = strings.ReplaceAll(d.cfg.TraceURL, "{trace}", out.Trace)
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
		out.Body = show.NewBody(c.Body, c.ContentType, shown)
	} else {
		out.Body = show.Body{Size: len(c.Body)}
	}
	return out
}

// decoded returns the content of a payload with its body decoded, and how it was encoded.
func (d *Dashboard) decoded(ctx context.Context, p Payload) (c wakebell.Content, encoding string) {
	c = p.Content
	kind := wakebelltype.OutgoingMessage
	if p.Queue == "" {
		if kind = wakebelltype.OutgoingTimer; !payloads.Marked(c.Headers, nil) {
			return c, ""
		}
	}
	encoding = payloads.Description(c.Headers, c.Body)
	if encoding == "" || d.chain == nil {
		return c, encoding
	}
	plain, err := d.chain.Decode(ctx, payloads.Encoded{
		Kind: kind, Topic: p.Topic + p.Queue, ID: p.ID, Headers: c.Headers, Body: c.Body, ContentType: c.ContentType, // one of Topic and Queue is empty
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
	Due     time.Time // up to which it is due
	Payload payload
	Retries bool // it was delivered before
	Past    attemptsData
	Why     explain.Explanation
	Report  reportData
	Joined  joinedData
}

// reportData is what the handlers of a timer have reported.
type reportData struct {
	wakebell.Report
	Percent int     // of the progress
	Payload payload // of the result
}

// report reads what the handlers of a timer have reported; nothing after an error, which
// older nodes return.
func (d *Dashboard) report(ctx context.Context, topic, id string) (data reportData) {
	r, err := d.op.Timers.Report(ctx, topic, id)
	if err != nil {
		return data
	}
	data.Report = r
	if r.Progress != nil {
		data.Percent = int(100 * r.Progress.Fraction)
	}
	if r.Result != nil {
		data.Payload = d.newPayload(ctx, Payload{Topic: topic, ID: id, Content: r.Result.Content}, bodytext.MaxShown)
	}
	return data
}

// readTimer reads a timer. If its payload is too large to be read, unread says so, and the
// content is empty.
func (d *Dashboard) readTimer(ctx context.Context, topic, id string) (info wakebell.Info, c wakebell.Content, unread, err error) {
	info, c, err = d.op.Timers.Get(ctx, topic, id)
	if errors.Is(err, wakebell.ErrTooLarge) && info.ID != "" { // without one, an earlier node was asked
		return info, c, err, nil
	}
	return info, c, nil, err
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
	info, content, unread, err := d.readTimer(ctx, topic, id)
	if err != nil {
		return d.gonePage(ctx, r, topic, id, fmt.Errorf("timer %s of topic %s: %w", show.Short(64, id), show.Short(64, topic), err))
	}
	past := attemptsData{Topic: topic, ID: id}
	past.Attempts, past.Err = d.attempts(ctx, topic, id)
	why, err := explain.Timer(ctx, d.op.Timers, topic, id)
	if err != nil {
		return page{}, err
	}
	joined := d.joined(ctx, r, topic, id, content.Headers, false)
	shown := payload{Unread: unread}
	if unread == nil {
		shown = d.newPayload(ctx, Payload{Topic: topic, ID: id, Content: content}, bodytext.MaxShown)
	}
	return page{
		template: "timer", title: "Timer " + id, section: "topics", live: watching("timer", "topic", topic, "id", id),
		data: timerData{topic, info, attended.Due(d.clock(ctx, topic)), shown, info.Attempts > 0, past, why, d.report(ctx, topic, id), joined},
	}, nil
}
