package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/cluster"
	"github.com/wakebell/wakebell/dashboard/internal/jobs"
	"github.com/wakebell/wakebell/dashboard/internal/roster"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

type nodesData struct {
	Rows   []heard
	Asked  int // topics
	All    int // topics with nodes
	Asking bool
	Err    error // of the last question
}

// nodesPage shows the nodes that answer.
func (d *Dashboard) nodesPage(ctx context.Context, r *request) (page, error) {
	t, reading, err := d.totalsSoon(ctx, r)
	if err != nil {
		return page{}, err
	}
	data := d.askNodes(ctx, t)
	data.Asking = data.Asking || reading
	return page{template: "nodes", title: "Nodes", section: "nodes", live: watching("nodes", d.coverOf(data)...), data: data}, nil
}

// nodesWait is how long a page waits for the first answers; a node takes 50 ms.
const nodesWait = 150 * time.Millisecond

// askNodes returns the nodes that answer for the topics that have any. A topic that Redis denies
// to the user is not asked for: one denied channel fails the question about all.
func (d *Dashboard) askNodes(ctx context.Context, t *cluster.Counts) (data nodesData) {
	served := func(o wakebelltype.Overview) bool { return o.Nodes != 0 && !errors.Is(o.Err, wakebell.ErrDenied) }
	names := t.Busiest(t.Read, served)
	data.All, data.Asked = len(names), min(len(names), roster.MaxTopics)
	answers, asking, err := d.roster.Answers(ctx, nodesWait, names)
	data.Asking, data.Err = asking, err
	for _, a := range answers {
		if len(data.Rows) == 0 || data.Rows[len(data.Rows)-1].Name != a.Node {
			data.Rows = append(data.Rows, heard{Name: a.Node})
		}
		topic := heardTopic{Name: a.Topic, State: a.State}
		if a.Silent {
			topic.Silent = a.At
		}
		data.Rows[len(data.Rows)-1].add(topic, a.Known)
	}
	return data
}

// coverOf returns the parameters that follow topics which together have all nodes: these say
// there that they leave.
func (d *Dashboard) coverOf(data nodesData) (watch []string) {
	var answers []roster.Answer
	for _, row := range data.Rows {
		for _, t := range row.Topics {
			answers = append(answers, roster.Answer{Node: row.Name, Topic: t.Name, Silent: !t.Silent.IsZero()})
		}
	}
	for _, topic := range roster.Cover(answers, maxFeeds) {
		watch = append(watch, "feed", topic)
	}
	return watch
}

// heard is a node with what it does on the topics that it handles.
type heard struct {
	Name   string
	Topics []heardTopic

	Silent            time.Time // its last answer, if it answers for no topic any more; zero: it answers
	Known             bool      // it says its state
	Version           string
	Started           time.Time
	Running           int
	Restarts, Outages int64
}

// heardTopic is a topic of a node.
type heardTopic struct {
	Name   string
	State  wakebelltype.NodeState
	Silent time.Time // the last answer of a node that answers no more; zero: it answers
}

// Limits are the options of the node that bound or time its work on the topic.
func (t heardTopic) Limits() string {
	var texts []string
	options := tuning.InForce(t.State.Options)
	for _, row := range tuning.All {
		if v := row.Get(&options); v != 0 {
			texts = append(texts, row.Flag+" "+row.Text(v))
		}
	}
	if s := t.State; s.Group != "" {
		texts = append(texts, fmt.Sprintf("group %s, weight %d", s.Group, s.Weight))
	}
	if after := t.State.ExpireAfter; after > 0 {
		texts = append(texts, "expire-after "+after.String())
	}
	return strings.Join(texts, ", ")
}

// topicsShown bounds the topics of a node that a page shows.
const topicsShown = 8

// Notable returns the topics of a node that a page shows: those on which its state is not the
// usual one first.
func (h heard) Notable() []heardTopic {
	usual := func(t heardTopic) int {
		if !t.Silent.IsZero() || t.State.Paused || t.State.BreakerReason != "" {
			return 0
		}
		return 1
	}
	topics := slices.SortedStableFunc(slices.Values(h.Topics), func(a, b heardTopic) int { return cmp.Compare(usual(a), usual(b)) })
	return topics[:min(topicsShown, len(topics))]
}

// More is the number of the other topics.
func (h heard) More() int { return len(h.Topics) - len(h.Notable()) }

// add adds a topic to a node. Outages are of the Redis of a topic, so the node has had as
// many as the topic with the most.
func (h *heard) add(t heardTopic, known bool) {
	h.Topics = append(h.Topics, t)
	h.Silent = t.Silent
	for _, other := range h.Topics {
		if other.Silent.IsZero() {
			h.Silent = time.Time{}
		}
	}
	if !known {
		return
	}
	if !t.Silent.IsZero() { // its timers go to other nodes when their leases expire
		t.State.Running = 0
	}
	h.Known, h.Version, h.Started = true, t.State.Version, t.State.Started
	h.Running += t.State.Running
	h.Restarts += t.State.Restarts
	h.Outages = max(h.Outages, t.State.Outages)
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
