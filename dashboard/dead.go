package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/cluster"
	"github.com/wakebell/wakebell/dashboard/internal/reasons"
	"github.com/wakebell/wakebell/dashboard/internal/show"
	"github.com/wakebell/wakebell/internal/bodytext"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	deadPage   = 50
	deadRead   = 500     // of one read, which holds Redis up
	deadScan   = 5000    // dead letters that are grouped by reason
	deadLonger = 100_000 // the same in a longer search
	deadFile   = 10_000  // of one export
	maxGroups  = 1000    // kinds of reasons that are counted apart

	// deadWait is for how long the first dead letters that match a filter are looked for,
	// and longWait if the address asks for a longer search. Few may match of many, and a
	// page shows what was found until then.
	deadWait = 60 * time.Millisecond
	longWait = readLimit - 2*time.Second
)

type deadTopics struct {
	Rows    []wakebelltype.Overview
	Cut     bool
	Reading bool // the totals are being read
}

// reasonGroup are dead letters whose reasons differ by ids, numbers and quoted words only.
type reasonGroup struct {
	Reason string // what they have in common
	Part   string // by which the group is filtered
	Count  int
	Last   time.Time
}

type deadData struct {
	Topic        string
	Total        int64
	Reason       string
	Prefix       string
	Older, Newer string
	Filtered     bool
	Rows         []wakebell.DeadLetter
	Groups       []reasonGroup
	Grouped      int  // dead letters that were looked at
	Cut          bool // not all that match were looked for
	Next, First  string
	Longer       string // address of a longer search; empty: all were looked at, or enough found
	GroupMore    string // address of a page that groups more; empty: all are grouped, or as many as may be
}

// deadPage shows the topics with dead letters, or the dead letters of one.
func (d *Dashboard) deadPage(ctx context.Context, r *request) (page, error) {
	topic := r.get("topic")
	if topic == "" {
		t, reading, err := d.totalsSoon(ctx, r)
		if err != nil {
			return page{}, err
		}
		return page{
			template: "dead_topics", title: "Dead letters", section: "dead", live: watching("overview"),
			data: deadTopics{t.Dead, len(t.Dead) == cluster.MostDead, reading},
		}, nil
	}
	filter, err := deadFilter(r)
	if err != nil {
		return page{}, err
	}
	o, err := d.readTopic(ctx, topic)
	if err != nil {
		return page{}, err
	}
	data := deadData{
		Topic: topic, Total: o.Stats.Dead, Reason: filter.Reason, Prefix: filter.ReasonPrefix,
		Older: r.get("older"), Newer: r.get("newer"), Filtered: filter != (wakebelltype.DeadFilter{}),
	}
	if err := d.readDead(ctx, r, &data, filter); err != nil {
		return page{}, err
	}
	return page{
		template: "dead", title: "Dead letters of " + topic, section: "dead", live: watching("topic", "name", topic), data: data,
	}, nil
}

// deadFilter reads the filter of the address.
func deadFilter(r *request) (f wakebelltype.DeadFilter, err error) {
	f = wakebelltype.DeadFilter{Entry: r.get("entry"), Reason: r.get("reason"), ReasonPrefix: r.get("prefix")}
	if f.OlderThan, err = span("older", r.get("older")); err != nil {
		return f, err
	}
	f.NewerThan, err = span("newer", r.get("newer"))
	return f, err
}

// span reads a duration such as 90s, 3h or 7d; empty means 0.
func span(name, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		text = days + "h"
		d, err := time.ParseDuration(text)
		if err == nil && d >= 0 && d < 100*365*time.Hour {
			return 24 * d, nil
		}
		return 0, fmt.Errorf("%w: %s: want a duration such as 90s, 3h or 7d", wakebell.ErrInvalid, name)
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%w: %s: %q, want a duration such as 90s, 3h or 7d", wakebell.ErrInvalid, name, text)
	}
	return d, nil
}

func (d *Dashboard) readDead(ctx context.Context, r *request, data *deadData, filter wakebelltype.DeadFilter) error {
	after, last := r.get("after"), ""
	wait, most := deadWait, deadScan
	if r.get("longer") != "" {
		wait, most = longWait, deadLonger
	}
	found, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	cut := false
	groups := map[string]*reasonGroup{}
	for letter, err := range d.deadLetters(found, data.Topic, filter, wakebelltype.Page{After: after, Limit: most}) {
		if cut = err != nil && found.Err() != nil && ctx.Err() == nil; cut {
			break
		}
		if err != nil {
			return fmt.Errorf("list dead letters: %w", err)
		}
		data.Grouped++
		group(groups, letter)
		if len(data.Rows) < deadPage {
			letter.Content = wakebell.Content{} // the page shows none
			data.Rows, last = append(data.Rows, letter), letter.Cursor
		}
	}
	for _, g := range groups {
		data.Groups = append(data.Groups, *g)
	}
	slices.SortFunc(data.Groups, func(a, b reasonGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	data.Groups = data.Groups[:min(len(data.Groups), cluster.Worst)]
	address := func(after, longer string) string {
		return d.link("dead", "topic", data.Topic, "reason", data.Reason, "prefix", data.Prefix, "older", data.Older, "newer", data.Newer, "after", after, "longer", longer)
	}
	switch {
	case data.Grouped > len(data.Rows), cut && len(data.Rows) == deadPage:
		data.Next = address(last, "")
	case cut && r.get("longer") == "":
		data.Longer = address(after, "1")
	}
	if (cut || data.Grouped == most) && r.get("longer") == "" && len(data.Rows) == deadPage {
		data.GroupMore = address(after, "1")
	}
	data.Cut = cut
	if after != "" {
		data.First = address("", "")
	}
	return nil
}

// deadLetters lists dead letters in reads of at most deadRead.
func (d *Dashboard) deadLetters(ctx context.Context, topic string, filter wakebelltype.DeadFilter, p wakebelltype.Page) iter.Seq2[wakebell.DeadLetter, error] {
	return func(yield func(wakebell.DeadLetter, error) bool) {
		for left := p.Limit; left > 0; {
			read := 0
			for letter, err := range d.op.Timers.DeadLetters(ctx, topic, filter, wakebelltype.Page{After: p.After, Limit: min(deadRead, left)}) {
				if !yield(letter, err) || err != nil {
					return
				}
				p.After = letter.Cursor
				read++
			}
			if read < min(deadRead, left) {
				return
			}
			left -= read
		}
	}
}

// group counts a dead letter with those whose reasons have the same pattern. Beyond
// maxGroups patterns, others are left out.
func group(groups map[string]*reasonGroup, l wakebell.DeadLetter) {
	pattern := reasons.Pattern(l.Reason)
	g := groups[pattern]
	if g == nil {
		if len(groups) == maxGroups {
			return
		}
		g = &reasonGroup{Reason: pattern, Part: reasons.Part(pattern)}
		groups[pattern] = g
	}
	g.Count++
	if l.Died.After(g.Last) {
		g.Last = l.Died
	}
}

type letterData struct {
	Topic   string
	Letter  wakebell.DeadLetter
	Payload payload
}

func (d *Dashboard) letterPage(ctx context.Context, r *request) (page, error) {
	topic, err := r.required("topic")
	if err != nil {
		return page{}, err
	}
	entry, err := r.required("entry")
	if err != nil {
		return page{}, err
	}
	l, err := d.op.Timers.DeadLetter(ctx, topic, entry)
	if err != nil {
		return page{}, fmt.Errorf("dead letter %s of topic %s: %w", show.Short(64, entry), show.Short(64, topic), err)
	}
	return page{
		template: "letter", title: "Dead letter of " + l.ID, section: "dead",
		data: letterData{topic, l, d.newPayload(ctx, Payload{Topic: topic, ID: l.ID, Content: l.Content}, bodytext.MaxShown)},
	}, nil
}

// letterLine is a line of an export.
type letterLine struct {
	wakebell.DeadLetter
	Hidden bool `json:"payload_hidden,omitempty"`
}

// exportDead sends dead letters as lines of JSON, 10,000 at most. The last line of a
// longer export is the cursor of the next one.
func (d *Dashboard) exportDead(r *request) {
	topic, err := r.required("topic")
	var filter wakebelltype.DeadFilter
	if err == nil {
		filter, err = deadFilter(r)
	}
	if err != nil {
		d.fail(r, statusOf(err), err)
		return
	}
	out, encoder := http.NewResponseController(r.w), json.NewEncoder(r.w)
	begun, n, cursor := false, 0, ""
	for letter, err := range d.op.Timers.DeadLetters(r.Context(), topic, filter, wakebelltype.Page{After: r.get("after"), Limit: deadFile + 1}) {
		if err != nil && !begun {
			d.fail(r, statusOf(err), err)
			return
		}
		if !begun {
			d.beginExport(r)
			begun = true
		}
		_ = out.SetWriteDeadline(time.Now().Add(writeLimit)) // not every server has deadlines
		if err != nil {
			_ = encoder.Encode(map[string]string{"error": err.Error()}) // the browser may have gone
			return
		}
		if n == deadFile {
			_ = encoder.Encode(map[string]string{"next": cursor}) // the browser may have gone
			return
		}
		n, cursor = n+1, letter.Cursor
		if encoder.Encode(d.letterLine(r.Context(), topic, letter)) != nil {
			return
		}
	}
	if !begun {
		d.beginExport(r)
	}
}

func (d *Dashboard) beginExport(r *request) {
	r.w.Header().Set("Content-Type", "application/x-ndjson")
	r.w.Header().Set("Content-Disposition", `attachment; filename="dead-letters.jsonl"`)
}

func (d *Dashboard) letterLine(ctx context.Context, topic string, l wakebell.DeadLetter) letterLine {
	if d.chain != nil && !d.cfg.HidePayloads {
		l.Content, _ = d.decoded(ctx, Payload{Topic: topic, ID: l.ID, Content: l.Content})
	}
	switch {
	case d.cfg.HidePayloads:
		l.Content = wakebell.Content{ContentType: l.Content.ContentType}
		return letterLine{l, true}
	case d.cfg.Redact != nil:
		l.Content = d.cfg.Redact(Payload{Topic: topic, ID: l.ID, Content: l.Content})
	}
	return letterLine{l, false}
}
