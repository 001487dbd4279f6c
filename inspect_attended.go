package wakebell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/attended"
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
