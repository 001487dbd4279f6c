package wakebell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/redisops/doctor"
	schedulestore "github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// attended returns the findings about the processes that should run: the check "beats" for
// recurring schedules, and "nodes" for each topic. names are without the prefix. No name of
// a schedule is in them: who may examine a topic need not see schedules.
func (c *Client) attended(ctx context.Context, names []string, reachable bool) []wakebelltype.Finding {
	err := errUnreachable
	var a schedulestore.Attendance
	if reachable {
		a, err = schedulestore.New(c.store).Attendance(ctx)
	}
	all := []wakebelltype.Finding{beatsFinding(a, err)}
	if len(names) == 0 {
		return all
	}
	var overviews []wakebelltype.Overview
	if reachable {
		overviews, err = c.Overview(ctx, names...)
	}
	for i, name := range names {
		one := wakebelltype.Overview{Err: err}
		if err == nil {
			one = overviews[i]
		}
		one.Topic = c.Prefix() + name
		all = append(all, nodesFinding(one))
	}
	return all
}

var errUnreachable = errors.New("redis is not reachable")

// reachable reports whether a server answered.
func reachable(found []wakebelltype.Finding) bool {
	return slices.ContainsFunc(found, func(f wakebelltype.Finding) bool {
		return f.Check == "reachable" && f.Grade != wakebelltype.GradeBad
	})
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

// Diagnose checks whether Redis is suitable for these topics. It checks latency,
// version, eviction policy, memory, persistence, replicas and clock of the
// server, and for each topic its slots, the types of its keys, scripts, the
// permissions of the user, cluster-wide settings, and data without a timer, and
// whether nodes handle it. For recurring schedules it checks that a beat runs. It
// writes nothing. A check that cannot run is Unknown and does not affect the
// others, so every check has a Finding; docs/cli.md lists them. The error
// concerns the arguments.
//
// Diagnose reads up to about 100,000 entries of each topic, a few hundred at a
// time.
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
	return append(found, c.attended(ctx, topics, reachable(found))...), nil
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
