package dashboard

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/jobs"
	"github.com/wakebell/wakebell/wakebelltype"
)

type nodesData struct {
	Rows        []heard
	Topics      []string // that were asked for their nodes
	Next, First string
}

// nodesPage shows the nodes that answered for a page of topics. They are asked while
// a browser watches the page.
func (d *Dashboard) nodesPage(ctx context.Context, r *request) (page, error) {
	names, err := d.readNames(ctx)
	if err != nil {
		return page{}, err
	}
	data, after := nodesData{}, r.get("after")
	if after != "" {
		i, found := slices.BinarySearch(names, after)
		if found {
			i++
		}
		names, data.First = names[i:], d.link("nodes")
	}
	if len(names) > maxFeeds {
		names = names[:maxFeeds]
		data.Next = d.link("nodes", "after", names[maxFeeds-1])
	}
	data.Topics, data.Rows = names, d.feeds.nodes(names)
	watch := []string{}
	for _, name := range names {
		watch = append(watch, "feed", name)
	}
	return page{template: "nodes", title: "Nodes", section: "nodes", live: watching("nodes", watch...), data: data}, nil
}

type doctorData struct {
	Topic    string
	Findings []wakebelltype.Finding
	Bad      int
	Warn     int
}

// severity orders findings: the worst first.
var severity = map[wakebelltype.Grade]int{
	wakebelltype.GradeBad: 0, wakebelltype.GradeUnknown: 1, wakebelltype.GradeWarn: 2, wakebelltype.GradeGood: 3,
}

// findings examines Redis, and a topic if one is named.
func (d *Dashboard) findings(ctx context.Context, topic string) ([]wakebelltype.Finding, error) {
	return d.doctor.Get(ctx, topic, func(ctx context.Context) ([]wakebelltype.Finding, error) {
		if topic == "" {
			return d.op.Timers.Diagnose(ctx)
		}
		return d.op.Timers.Diagnose(ctx, topic)
	})
}

// doctorPage checks Redis, and a topic if the address names one.
func (d *Dashboard) doctorPage(ctx context.Context, r *request) (page, error) {
	data := doctorData{Topic: r.get("topic")}
	findings, err := d.findings(ctx, data.Topic)
	if err != nil {
		return page{}, err
	}
	data.Findings = slices.SortedStableFunc(slices.Values(findings), func(a, b wakebelltype.Finding) int {
		return cmp.Compare(severity[a.Grade], severity[b.Grade])
	})
	for _, f := range findings {
		switch f.Grade {
		case wakebelltype.GradeBad:
			data.Bad++
		case wakebelltype.GradeWarn:
			data.Warn++
		}
	}
	return page{template: "doctor", title: "Doctor", section: "doctor", data: data}, nil
}

func (d *Dashboard) jobsPage(context.Context, *request) (page, error) {
	return page{template: "jobs", title: "Jobs", section: "jobs", live: watching("jobs"), data: d.jobs.All()}, nil
}

// noJob says that there is no such job. It counts as not found, without the words for a timer.
type noJob struct{}

func (noJob) Error() string {
	return "this dashboard has no such job; it forgets jobs when it restarts"
}

func (noJob) Is(target error) bool { return target == wakebell.ErrNotFound }

func (d *Dashboard) findJob(r *request) (*jobs.Job, error) {
	id, err := strconv.ParseInt(r.get("id"), 10, 64)
	if err != nil {
		return nil, noJob{}
	}
	j := d.jobs.Get(id)
	if j == nil {
		return nil, noJob{}
	}
	return j, nil
}

func (d *Dashboard) jobPage(_ context.Context, r *request) (page, error) {
	j, err := d.findJob(r)
	if err != nil {
		return page{}, err
	}
	return page{template: "job", title: "Job", section: "jobs", live: watching("jobs"), data: j.Status()}, nil
}

// sortHeaders sorts headers by name.
func sortHeaders(all []header) {
	slices.SortFunc(all, func(a, b header) int { return strings.Compare(a.Key, b.Key) })
}
