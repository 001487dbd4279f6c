package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/cluster"
	"github.com/wakebell/wakebell/dashboard/internal/fan"
	"github.com/wakebell/wakebell/internal/ranked"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

const topicsPage = 50 // topics of a page

// knownTopics are the names of all topics, sorted, without the prefix; lost says why those
// are missing that are on servers of a Cluster which do not answer.
type knownTopics struct {
	names []string
	lost  error
}

// readKnown returns the names of the topics; an error if none is known.
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
	all, err := d.topics.Get(ctx, fmt.Sprintf("%q", names), func(ctx context.Context) ([]wakebelltype.Overview, error) {
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

// readTotals reads all topics; the cache bounds how often.
func (d *Dashboard) readTotals(ctx context.Context) (*cluster.Counts, error) {
	return d.totals.Get(ctx, "", d.sumTopics)
}

func (d *Dashboard) sumTopics(ctx context.Context) (*cluster.Counts, error) {
	known, err := d.readKnown(ctx)
	if err != nil {
		return nil, err
	}
	c, err := cluster.Read(ctx, known.names, d.op.Timers.Overview)
	if err == nil {
		c.Lost = known.lost
	}
	return c, err
}

// totalsWait is how long a page waits for the totals. Of thousands of topics they take
// longer when they are not in the cache; the page is shown without them then.
const totalsWait = 100 * time.Millisecond

// totalsSoon returns the totals if they can be had soon, or those before. Otherwise reading is
// true: they are being read, and the browser is asked to load the page again.
func (d *Dashboard) totalsSoon(ctx context.Context, r *request) (t *cluster.Counts, reading bool, err error) {
	t, err = d.totals.Soon(ctx, totalsWait, "", d.sumTopics)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		r.w.Header().Set("Refresh", "1")
		return &cluster.Counts{}, true, nil
	}
	return t, false, err
}

type overviewData struct {
	Totals  cluster.Counts
	Reading bool // the totals are being read
	Worst   int
	Dead    []wakebelltype.Overview
	Queues  int64                // dead letters of queues
	Beats   wakebelltype.Finding // of the check "beats"; zero: it is not known yet

	Chart    chartData
	Late     lateChart
	Charted  int   // topics in the charts
	Charting bool  // they are being read
	PastErr  error // why there is no chart
	Ahead    aheadData
	Nodes    nodesData
}

func (d *Dashboard) overviewPage(ctx context.Context, r *request) (page, error) {
	t, reading, err := d.totalsSoon(ctx, r)
	if err != nil {
		return page{}, err
	}
	if reading {
		return page{template: "overview", title: "Overview", section: "overview", data: overviewData{Reading: true}}, nil
	}
	data := overviewData{Totals: *t, Worst: cluster.Worst, Dead: t.Dead[:min(cluster.Worst, len(t.Dead))], Beats: d.beats(ctx), Ahead: d.ahead(ctx)}
	data.Totals.Rows = nil
	queues, _ := d.queueRows(ctx) // the page of queues says why they cannot be read
	for _, q := range queues {
		data.Queues += q.Stats.Dead
	}
	past, err := d.allThroughput(ctx, t, pastOf(r))
	data.Charting = errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	data.Chart, data.Late, data.Charted, data.PastErr = d.ranged(r, past.sum, ""), newLateChart(past.sum), past.topics, err
	data.Nodes = d.askNodes(ctx, t)
	return page{template: "overview", title: "Overview", section: "overview", live: watching("overview", d.coverOf(data.Nodes)...), data: data}, nil
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
	Search   string
	Sort     string   // an order of package ranked
	Orders   []column // of the table
	Problems bool     // only topics with problems
	Link     string   // address with only the others of these two
	Rows     []wakebelltype.Overview
	Next     string // address of the next page
	First    string // address of the first page, if this is another
	Count    int64  // topics that match
	Total    int    // topics with problems
	Cut      int    // topics that were looked at, if not all were
	Lost     error  // why topics are missing; nil: none are
	Charts   map[string]chartData
	Reading  bool // the totals are being read
}

// column is a column by which the table of topics can be sorted.
type column struct {
	Title, Href string
	Now         bool // it is sorted by it
}

// topicsPage sorts and filters by the shared totals, and reads the topics that it shows anew.
func (d *Dashboard) topicsPage(ctx context.Context, r *request) (page, error) {
	data := topicsData{Search: r.get("q"), Sort: cmp.Or(r.get("sort"), "name"), Problems: r.get("only") == "problems"}
	if !ranked.Known(data.Sort) {
		return page{}, fmt.Errorf("%w: sort: %q, want one of %s", wakebell.ErrInvalid, data.Sort, strings.Join(ranked.Orders(), ", "))
	}
	from, _ := strconv.Atoi(r.get("from")) // a broken one is the first page
	names, counts, err := d.tabled(ctx, r, &data)
	if err != nil {
		return page{}, err
	}
	only, other := "", "problems"
	if data.Problems {
		only, other = "problems", ""
	}
	sort := strings.TrimSuffix(data.Sort, "name")
	data.Count, data.Total, data.Link = int64(len(names)), counts.Problems, d.link("topics", "q", data.Search, "sort", sort, "only", other)
	for _, title := range []string{"Due", "Oldest", "Late", "Rate", "Dead"} {
		order := strings.ToLower(title)
		data.Orders = append(data.Orders, column{title, d.link("topics", "q", data.Search, "sort", order, "only", only), data.Sort == order})
	}
	if from = max(0, min(from, len(names))); from > 0 {
		data.First = d.link("topics", "q", data.Search, "sort", sort, "only", only)
	}
	if names = names[from:]; len(names) > topicsPage {
		names = names[:topicsPage]
		data.Next = d.link("topics", "q", data.Search, "sort", sort, "only", only, "from", strconv.Itoa(from+topicsPage))
	}
	watch := []string{}
	for _, name := range names {
		watch = append(watch, "name", name)
	}
	if data.Rows, err = d.readTopics(ctx, names); err != nil {
		data.Rows, names = counts.Of(names), nil // with their age
	}
	if data.Charts, err = d.sparks(ctx, names); err != nil {
		return page{}, err
	}
	return page{template: "topics", title: "Topics", section: "topics", live: watching("topics", watch...), data: data}, nil
}

// sparks returns the charts of the table. One that cannot be read is left out: the topic's page
// says why.
func (d *Dashboard) sparks(ctx context.Context, names []string) (map[string]chartData, error) {
	var mu sync.Mutex
	all := map[string]chartData{}
	_, err := fan.Out(ctx, len(names), func(i int) {
		past, err := d.throughput(ctx, names[i], pastDefault)
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		all[names[i]] = newChart(past)
	})
	return all, err
}

// tabled returns the names of the topics that the table has on all its pages, and the last
// counts of all. By name, the names suffice: of thousands of topics, a page does not wait for a
// reading of all.
func (d *Dashboard) tabled(ctx context.Context, r *request, data *topicsData) (names []string, counts *cluster.Counts, err error) {
	contains := func(name string) bool { return strings.Contains(name, data.Search) }
	if data.Sort != "name" || data.Problems {
		counts, data.Reading, err = d.totalsSoon(ctx, r)
		if err != nil {
			return nil, nil, err
		}
		if data.Lost = counts.Lost; counts.Read < counts.Topics {
			data.Cut = counts.Read
		}
		return counts.Select(contains, data.Sort, data.Problems), counts, nil
	}
	counts, ok := d.totals.Have(ctx, "")
	known, err := d.readKnown(ctx)
	switch {
	case err != nil && ok: // what was read before; in an outage the page has a banner
		return counts.Select(contains, data.Sort, false), counts, nil
	case err != nil:
		return nil, nil, err
	case !ok:
		counts = &cluster.Counts{}
	}
	data.Lost = known.lost
	for _, name := range known.names {
		if contains(name) {
			names = append(names, name)
		}
	}
	return names, counts, nil
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
