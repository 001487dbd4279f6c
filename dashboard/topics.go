package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	topicsPage = 50     // topics of a page
	maxTopics  = 10_000 // that the totals read
	topicsRead = 500    // topics of a read of the totals
)

// knownTopics are the names of all topics, sorted, without the prefix; lost says why those
// are missing that are on servers of a Cluster which do not answer.
type knownTopics struct {
	names []string
	lost  error
}

// readNames returns the names of the topics; an error if none is known.
func (d *Dashboard) readNames(ctx context.Context) ([]string, error) {
	known, err := d.readKnown(ctx)
	return known.names, err
}

func (d *Dashboard) readKnown(ctx context.Context) (knownTopics, error) {
	return d.names.Get(ctx, "", func(ctx context.Context) (known knownTopics, err error) {
		for name, err := range d.op.Timers.Topics(ctx, false, wakebelltype.Page{}) {
			if err != nil && len(known.names) == 0 {
				return known, err
			}
			if known.lost = err; err != nil {
				return known, nil
			}
			if rest, ok := strings.CutPrefix(name, d.prefix); ok && rest != "" {
				known.names = append(known.names, rest)
			}
		}
		return known, nil
	})
}

// readTopics returns the overviews of topics, with their names as given.
func (d *Dashboard) readTopics(ctx context.Context, names []string) ([]wakebelltype.Overview, error) {
	if len(names) == 0 {
		return nil, nil
	}
	all, err := d.topics.Get(ctx, strings.Join(names, "\x00"), func(ctx context.Context) ([]wakebelltype.Overview, error) {
		all, err := d.op.Timers.Overview(ctx, names...)
		for i := range all {
			all[i].Topic = names[i]
		}
		return all, err
	})
	return slices.Clone(all), err // callers change their copies
}

// readTopic returns the overview of one topic.
func (d *Dashboard) readTopic(ctx context.Context, name string) (wakebelltype.Overview, error) {
	all, err := d.readTopics(ctx, []string{name})
	if err != nil {
		return wakebelltype.Overview{}, err
	}
	return all[0], all[0].Err
}

// totals are the sums over all topics.
type totals struct {
	Topics int // that exist
	Read   int // that are in the sums
	Stats  wakebelltype.Stats

	Behind []wakebelltype.Overview // with due timers, the latest first
	Paused []wakebelltype.Overview
	Dead   []wakebelltype.Overview // with dead letters, the most first
	Faults []wakebelltype.Overview // that cannot be read, or have lost data
	Alone  []wakebelltype.Overview // whose due timers wait for a node, the latest first
	NoNode int                     // number of these topics
	Lost   error                   // why topics are missing; nil: none are
}

const worst = 10 // topics of a list of the overview

// readTotals reads all topics; the cache bounds how often.
func (d *Dashboard) readTotals(ctx context.Context) (totals, error) {
	t, err := d.totals.Get(ctx, "", d.sumTopics)
	if err != nil {
		return totals{}, err
	}
	return *t, nil
}

func (d *Dashboard) sumTopics(ctx context.Context) (*totals, error) {
	known, err := d.readKnown(ctx)
	if err != nil {
		return nil, err
	}
	names := known.names
	t := &totals{Topics: len(names), Read: min(len(names), maxTopics), Lost: known.lost}
	for part := range slices.Chunk(names[:t.Read], topicsRead) {
		all, err := d.op.Timers.Overview(ctx, part...)
		if err != nil {
			return nil, err
		}
		for i, o := range all {
			o.Topic = part[i]
			t.add(o)
		}
	}
	t.trim()
	return t, nil
}

func (t *totals) add(o wakebelltype.Overview) {
	s := o.Stats
	t.Stats.Total += s.Total
	t.Stats.Pending += s.Pending
	t.Stats.Due += s.Due
	t.Stats.Leased += s.Leased
	t.Stats.Retrying += s.Retrying
	t.Stats.Parked += s.Parked
	t.Stats.Dead += s.Dead
	t.Stats.Estimated = t.Stats.Estimated || s.Estimated
	if s.Lag > t.Stats.Lag {
		t.Stats.Lag, t.Stats.OldestDue = s.Lag, s.OldestDue
	}
	if s.Due > 0 {
		t.Behind = append(t.Behind, o)
	}
	if attended.Waits(o) != "" {
		t.Alone = append(t.Alone, o)
	}
	if s.Paused || o.Control.Paused {
		t.Paused = append(t.Paused, o)
	}
	if s.Dead > 0 {
		t.Dead = append(t.Dead, o)
	}
	if o.Err != nil || o.Damage != "" {
		t.Faults = append(t.Faults, o)
	}
}

// trim keeps the worst topics of each list.
func (t *totals) trim() {
	late := func(a, b wakebelltype.Overview) int { return cmp.Compare(b.Stats.Lag, a.Stats.Lag) }
	slices.SortStableFunc(t.Behind, late)
	slices.SortStableFunc(t.Alone, late)
	slices.SortStableFunc(t.Dead, func(a, b wakebelltype.Overview) int { return int(b.Stats.Dead - a.Stats.Dead) })
	t.NoNode = len(t.Alone)
	t.Alone = t.Alone[:min(worst, len(t.Alone))]
	t.Behind = t.Behind[:min(worst, len(t.Behind))]
	t.Dead = t.Dead[:min(topicsPage, len(t.Dead))]
	t.Paused = t.Paused[:min(worst, len(t.Paused))]
	t.Faults = t.Faults[:min(worst, len(t.Faults))]
}

// totalsWait is how long a page waits for the totals. Of thousands of topics they take
// longer when they are not in the cache; the page is shown without them then.
const totalsWait = 100 * time.Millisecond

// totalsSoon returns the totals if they can be had soon. Otherwise reading is true: they
// are being read, and the browser is asked to load the page again.
func (d *Dashboard) totalsSoon(ctx context.Context, r *request) (t totals, reading bool, err error) {
	soon, cancel := context.WithTimeout(ctx, totalsWait)
	defer cancel()
	t, err = d.readTotals(soon)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		r.w.Header().Set("Refresh", "1")
		return totals{}, true, nil
	}
	return t, false, err
}

type overviewData struct {
	Totals  totals
	Reading bool // the totals are being read
	Worst   int
	Dead    []wakebelltype.Overview
	Beats   wakebelltype.Finding // of the check "beats"; zero: it is not known yet

	Chart   chartData
	Late    lateChart
	Charted int   // topics in the chart
	PastErr error // why there is no chart
	Ahead   aheadData

	Nodes []heard
	Asked int // topics whose nodes are asked
}

// overviewFeeds bounds the topics whose nodes the overview asks. The page of nodes asks
// those of all.
const overviewFeeds = 10

func (d *Dashboard) overviewPage(ctx context.Context, r *request) (page, error) {
	t, reading, err := d.totalsSoon(ctx, r)
	if err != nil {
		return page{}, err
	}
	if reading {
		return page{template: "overview", title: "Overview", section: "overview", data: overviewData{Reading: true}}, nil
	}
	data := overviewData{Totals: t, Worst: worst, Dead: t.Dead[:min(worst, len(t.Dead))], Beats: d.beats(ctx), Ahead: d.ahead(ctx)}
	var watch []string
	if names, err := d.readNames(ctx); err != nil {
		data.PastErr = err
	} else {
		data.Charted = min(pastTopics, len(names))
		past, err := d.allThroughput(ctx, names, pastOf(r))
		data.Chart, data.Late, data.PastErr = d.ranged(r, past, ""), newLateChart(past), err
		asked := names[:min(overviewFeeds, len(names))]
		data.Nodes, data.Asked = d.feeds.nodes(asked), len(asked)
		for _, name := range asked {
			watch = append(watch, "feed", name)
		}
	}
	return page{template: "overview", title: "Overview", section: "overview", live: watching("overview", watch...), data: data}, nil
}

// beats returns the finding of Diagnose about beats, if it can be had soon; otherwise it is
// being read, and the next probe of the page has it. An error leaves it unknown: who may
// not examine Redis may see the overview.
func (d *Dashboard) beats(ctx context.Context) wakebelltype.Finding {
	soon, cancel := context.WithTimeout(ctx, totalsWait)
	defer cancel()
	found, err := d.findings(soon, "")
	if i := slices.IndexFunc(found, func(f wakebelltype.Finding) bool { return f.Check == "beats" }); err == nil && i >= 0 {
		return found[i]
	}
	return wakebelltype.Finding{}
}

type topicsData struct {
	Search string
	Rows   []wakebelltype.Overview
	Next   string // address of the next page
	First  string // address of the first page, if this is another
	Count  int64  // topics that match
	Lost   error  // why topics are missing; nil: none are
	Charts map[string]chartData
}

func (d *Dashboard) topicsPage(ctx context.Context, r *request) (page, error) {
	known, err := d.readKnown(ctx)
	if err != nil {
		return page{}, err
	}
	names, search, after := known.names, r.get("q"), r.get("after")
	if search != "" {
		names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.Contains(n, search) })
	}
	data := topicsData{Search: search, Count: int64(len(names)), Lost: known.lost}
	if after != "" {
		i, found := slices.BinarySearch(names, after)
		if found {
			i++
		}
		names = names[i:]
		data.First = d.link("topics", "q", search)
	}
	if len(names) > topicsPage {
		names = names[:topicsPage]
		data.Next = d.link("topics", "q", search, "after", names[topicsPage-1])
	}
	data.Rows, err = d.readTopics(ctx, names)
	data.Charts = map[string]chartData{}
	for _, name := range names {
		if past, err := d.throughput(ctx, name, pastDefault); err == nil { // otherwise the topic's page says why
			data.Charts[name] = newChart(past)
		}
	}
	watch := []string{}
	for _, name := range names {
		watch = append(watch, "name", name)
	}
	return page{template: "topics", title: "Topics", section: "topics", live: watching("topics", watch...), data: data}, err
}

// setting is a row of the table of a topic's overrides.
type setting struct{ Name, Text, Usage string }

func overrides(s wakebelltype.Settings) (rows []setting) {
	for _, t := range tuning.All {
		if v := t.Get(&s); v != 0 {
			rows = append(rows, setting{t.Flag, t.Text(v), t.Usage})
		}
	}
	return rows
}

// openBreakers returns the reports of nodes whose circuit breaker is not closed.
func openBreakers(reports []wakebelltype.NodeReport) []wakebelltype.NodeReport {
	return slices.DeleteFunc(slices.Clone(reports), func(r wakebelltype.NodeReport) bool { return r.State.BreakerSince.IsZero() })
}

type topicData struct {
	Name      string
	Overview  wakebelltype.Overview
	Overrides []setting
	Upcoming  timersData
	Running   timersData
	Nodes     []heard
	Open      []wakebelltype.NodeReport // nodes whose circuit breaker is not closed
	Late      lateness
	Events    []wakebelltype.Event
	Silent    error // why there are no events

	Chart     chartData
	LateChart lateChart
	PastErr   error // why there is no chart
	Past      attemptsData
	Ahead     aheadData
}

const rowsOfTopic = 10 // timers of each list on the page of a topic

func (d *Dashboard) topicPage(ctx context.Context, r *request) (page, error) {
	name, err := r.required("name")
	if err != nil {
		return page{}, err
	}
	o, err := d.readTopic(ctx, name)
	if err != nil {
		return page{}, fmt.Errorf("read topic: %w", err)
	}
	data := topicData{Name: name, Overview: o, Overrides: overrides(o.Control.Settings), Nodes: d.feeds.nodes([]string{name}), Open: openBreakers(o.Reports)}
	data.Events, data.Silent = d.feeds.events(name)
	data.Late = d.feeds.lateness(name)
	if data.Upcoming, err = d.readTimers(ctx, timerQuery{topic: name, limit: rowsOfTopic}); err != nil {
		return page{}, err
	}
	if data.Running, err = d.readTimers(ctx, timerQuery{topic: name, running: true, limit: rowsOfTopic}); err != nil {
		return page{}, err
	}
	past, err := d.throughput(ctx, name, pastOf(r))
	data.Chart, data.LateChart, data.PastErr = d.ranged(r, past, "topic", "name", name), newLateChart(past), err
	data.Past.Topic, data.Ahead = name, d.ahead(ctx, name)
	data.Past.Attempts, data.Past.Err = d.attempts(ctx, name, "")
	return page{
		template: "topic", title: "Topic " + name, section: "topics",
		live: watching("topic", "name", name, "feed", name), data: data,
	}, nil
}
