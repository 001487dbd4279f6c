package wakebell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/redisops/doctor"
	schedulestore "github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// reachable reports whether a server answered.
func reachable(found []wakebelltype.Finding) bool {
	return slices.ContainsFunc(found, func(f wakebelltype.Finding) bool {
		return f.Check == "reachable" && f.Grade != wakebelltype.GradeBad
	})
}

// Diagnose checks whether Redis is suitable for these topics. It checks latency,
// version, eviction policy, memory, persistence, replicas and clock of the
// server, keys without a topic, and for each topic its slots, the types of its keys, scripts, the
// permissions of the user, cluster-wide settings, data without a timer, whether nodes
// handle it, whether its due timers make progress, whether dead letters grow, and
// whether the settings and versions of nodes differ. For recurring schedules it checks that a beat
// runs. It writes nothing. A check that cannot run is Unknown and does not affect the
// others, so every check has a Finding; docs/cli.md lists them. The error
// concerns the arguments.
//
// Diagnose reads up to about 100,000 entries of all topics together, a few hundred of
// each at a time, at least 100 of each, and up to 100,000 keys. It asks nodes for their settings, and waits for 1.5 s at most.
func (c *Client) Diagnose(ctx context.Context, topics ...string) ([]wakebelltype.Finding, error) {
	full := make([]string, len(topics))
	for i, topic := range topics {
		var err error
		if full[i], err = c.fullName(topic); err != nil {
			return nil, err
		}
	}
	names, err := c.physicalOr(ctx, full)
	if err != nil {
		return nil, err
	}
	found, err := doctor.Diagnose(ctx, c.store.Timers(), names...)
	if err != nil {
		return nil, err
	}
	return append(found, c.attended(ctx, full, reachable(found))...), nil
}

// modulePath is the path of this module.
const modulePath = "github.com/wakebell/wakebell"

// moduleVersion returns the version of Wakebell in this program; "(devel)" for a build
// from the source tree.
func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	if info.Main.Path == modulePath {
		return info.Main.Version
	}
	for _, m := range info.Deps {
		if m.Path == modulePath {
			return m.Version
		}
	}
	return ""
}

// nodeName returns the Node of events: host, process id and name of the System.
func nodeName(system string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%s", cmp.Or(host, "unknown"), os.Getpid(), system)
}

// Repair restores what it can of a topic after a key of it was deleted or evicted, or a
// partial restore; without o.Apply it only says what it would do. Payloads without a timer
// get their timers back: at the instants that their lease records or keys have, and others at
// o.At. Timers without a payload are counted, and become dead letters with o.DropMissing,
// unless a handler has them. Lease records and keys of timers with neither are removed.
//
// It works in small steps while nodes and clients use the topic; nodes mend within a minute
// which timers hold their keys. After an error, the result counts what was done, and another
// call continues. The error wraps ErrInvalid while the topic is being resharded.
func (c *Client) Repair(ctx context.Context, topic string, o wakebelltype.RepairOptions) (wakebelltype.Repaired, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.Repaired{}, err
	}
	done, err := c.store.Repair(ctx, full, o)
	if o.Apply {
		c.record(ctx, wakebelltype.AuditTopicRepair, full, audit.Result{Count: done.Restored + done.Dropped + done.Removed, Err: err})
	}
	return done, err
}

// countedAtOnce is how many topics a round trip reads the counts of.
const countedAtOnce = 100

// attended returns the findings about the processes that should run: the check "beats" for
// recurring schedules, "versions" of nodes, and of each topic "nodes", "progress", "dead" and
// "settings", those first whose timers wait longest. Topics are full names. No name of
// a schedule is in them: who may examine a topic need not see schedules.
func (c *Client) attended(ctx context.Context, topics []string, reachable bool) []wakebelltype.Finding {
	err := errUnreachable
	var a schedulestore.Attendance
	if reachable {
		a, err = schedulestore.New(c.store).Attendance(ctx)
	}
	all := []wakebelltype.Finding{beatsFinding(a, err)}
	if len(topics) == 0 {
		return all
	}
	crews := make([]crew, len(topics))
	for i, topic := range topics {
		crews[i] = crew{overview: wakebelltype.Overview{Topic: topic, Err: errUnreachable}, recentErr: errUnreachable, askedErr: errUnreachable}
	}
	if reachable {
		c.readCrews(ctx, crews)
	}
	slices.SortStableFunc(crews, func(a, b crew) int { return cmp.Compare(b.overview.Stats.Lag, a.overview.Stats.Lag) })
	all = append(all, versionsFinding(crews))
	for _, w := range crews {
		all = append(all, w.findings()...)
	}
	return all
}

var errUnreachable = errors.New("redis is not reachable")

// crew is what is known of the work on a topic.
type crew struct {
	overview wakebelltype.Overview

	recent    wakebelltype.Throughput
	recentErr error

	nodes    []wakebelltype.NodeReport // that answered
	askedErr error
}

// readCrews reads the topics of crews, 100 in a round trip.
func (c *Client) readCrews(ctx context.Context, crews []crew) {
	names := make([]string, len(crews))
	for i, w := range crews {
		names[i] = w.overview.Topic
	}
	overviews, err := c.store.Overview(ctx, names...)
	for i := range crews {
		if crews[i].overview.Err = err; err == nil {
			crews[i].overview = overviews[i]
		}
	}
	c.readRecent(ctx, crews)
	c.askNodes(ctx, crews)
}

// readRecent reads the counts of the last half hour, and joins those of shards.
func (c *Client) readRecent(ctx context.Context, crews []crew) {
	at := map[string]*crew{}
	var names []string
	for i := range crews {
		topic := crews[i].overview.Topic
		physical, err := c.store.Physical(ctx, topic)
		crews[i].recentErr = err
		names = append(names, physical...)
		at[topic] = &crews[i]
	}
	for part := range slices.Chunk(names, countedAtOnce) {
		all, err := c.store.Timers().Recent(ctx, attended.Window, part...)
		for i, name := range part {
			one := timers.Recent{Err: err}
			if err == nil {
				one = all[i]
			}
			at[sharding.Topic(name)].addRecent(one)
		}
	}
}

func (w *crew) addRecent(r timers.Recent) {
	w.recentErr = cmp.Or(w.recentErr, r.Err)
	if len(w.recent.Points) == 0 {
		w.recent = r.Throughput
		return
	}
	for i := range r.Throughput.Points {
		if i < len(w.recent.Points) {
			w.recent.Points[i].Add(r.Throughput.Points[i])
		}
	}
}

// askNodes asks the nodes of topics for their settings, with one question to all but those of
// topics that Redis denies to the user.
func (c *Client) askNodes(ctx context.Context, crews []crew) {
	asked := map[string]*crew{}
	for i := range crews {
		w := &crews[i]
		if w.askedErr = w.overview.Err; w.overview.Nodes > 0 && !errors.Is(w.askedErr, ErrDenied) {
			asked[w.overview.Topic] = w
		}
	}
	answers, err := c.store.AskNodes(ctx, slices.Collect(maps.Keys(asked)))
	unasked, denied := errors.AsType[*wakebelltype.UnaskedError](err)
	for topic, w := range asked {
		if !denied || slices.Contains(unasked.Topics, topic) {
			w.askedErr = err
		}
	}
	for _, a := range answers {
		if w := asked[a.Topic]; w != nil {
			n := wakebelltype.NodeReport{Node: a.Node}
			if a.State != nil {
				n.State = *a.State
			}
			w.nodes = append(w.nodes, n)
		}
	}
}

func (w crew) findings() []wakebelltype.Finding {
	o, r := w.overview, w.recentErr
	return []wakebelltype.Finding{
		nodesFinding(o),
		found("progress", o.Topic, o.Err, func() attended.Verdict { return attended.Progress(o) }),
		found("dead", o.Topic, cmp.Or(o.Err, r), func() attended.Verdict { return attended.Dead(o.Stats.Dead, w.recent) }),
		found("settings", o.Topic, w.askedErr, func() attended.Verdict { return attended.Settings(w.nodes, o.Control.Settings) }),
	}
}

// found returns the finding of a check, which is unknown if what it needs was not read.
func found(check, topic string, err error, verdict func() attended.Verdict) wakebelltype.Finding {
	f := wakebelltype.Finding{Check: check, Topic: topic, Grade: wakebelltype.GradeUnknown}
	if err != nil {
		f.Found = "not checked: " + err.Error()
		return f
	}
	v := verdict()
	f.Grade, f.Found, f.Do = v.Grade, v.Found, v.Do
	return f
}

func versionsFinding(crews []crew) wakebelltype.Finding {
	answers := make([][]wakebelltype.NodeReport, len(crews))
	var err error
	for i, w := range crews {
		if answers[i] = w.nodes; len(w.nodes) == 0 {
			err = cmp.Or(err, w.askedErr)
		}
	}
	if slices.ContainsFunc(answers, func(n []wakebelltype.NodeReport) bool { return len(n) > 0 }) {
		err = nil
	}
	return found("versions", "", err, func() attended.Verdict { return attended.Versions(answers) })
}

func beatsFinding(a schedulestore.Attendance, err error) wakebelltype.Finding {
	f := wakebelltype.Finding{Check: "beats", Grade: wakebelltype.GradeGood}
	switch overdue := a.Overdue.Round(time.Second); {
	case err != nil:
		f.Grade, f.Found = wakebelltype.GradeUnknown, "not checked: "+err.Error()
	case a.Schedules == 0:
		f.Found = "not needed: there are no recurring schedules"
	case a.Beats == 0:
		f.Grade, f.Do = wakebelltype.GradeBad, "start wakebell beat, or a System with a Scheduler"
		f.Found = fmt.Sprintf("none, and %d recurring schedules", a.Schedules)
		if a.Overdue > 0 {
			f.Found += fmt.Sprintf("; a run has been due for %s", overdue)
		}
	case a.Overdue > attended.Limit:
		f.Grade, f.Found = wakebelltype.GradeBad, fmt.Sprintf("a run has been due for %s, and no beat fires it", overdue)
		f.Do = "wakebell schedules ls shows which: it cannot be read, waits for its last run, or has a prefix that no beat has; then look at the logs of the beats"
	case a.Beats < 0:
		f.Grade, f.Found = wakebelltype.GradeUnknown, "not checked: the user may not count subscriptions"
	default:
		f.Found = fmt.Sprintf("%d, for %d recurring schedules", a.Beats, a.Schedules)
	}
	return f
}

func nodesFinding(o wakebelltype.Overview) wakebelltype.Finding {
	f := wakebelltype.Finding{Check: "nodes", Topic: o.Topic}
	if o.Err != nil {
		f.Grade, f.Found = wakebelltype.GradeUnknown, "not checked: "+o.Err.Error()
		return f
	}
	if f.Grade, f.Found = attended.Topic(o); f.Grade == wakebelltype.GradeBad || f.Grade == wakebelltype.GradeWarn {
		f.Do = "start a node for the topic, or remove the topic if it is no longer used"
	}
	return f
}
