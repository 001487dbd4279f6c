// Package attended says whether a process runs for what waits: a node for a topic, a beat
// for a recurring schedule. Doctor, the commands and the dashboard show its answers.
package attended

import (
	"fmt"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Limit is how long a due timer or run waits before its wait counts as the lack of a
// process: Python workers and beats, which are not counted, poll more often.
const Limit = time.Minute

// Topic grades whether nodes handle a topic that could be read, and says what was found.
// It is bad if due timers wait for longer than Limit and no node handles the topic.
func Topic(o wakebelltype.Overview) (wakebelltype.Grade, string) {
	switch {
	case o.Nodes < 0:
		return wakebelltype.GradeUnknown, "not checked: the user may not count subscriptions"
	case o.Nodes > 0:
		return wakebelltype.GradeGood, fmt.Sprint(o.Nodes)
	case o.Stats.Total == 0:
		return wakebelltype.GradeGood, "none, and no timers"
	case Late(o):
		return wakebelltype.GradeBad, fmt.Sprintf("none, and %d timers are due, the first for %s", o.Stats.Due, o.Stats.Lag.Round(time.Second))
	default:
		return wakebelltype.GradeWarn, fmt.Sprintf("none, and the topic has %d timers", o.Stats.Total)
	}
}

// Late reports whether due timers of a topic wait for longer than Limit, and not because an
// operator has paused it.
func Late(o wakebelltype.Overview) bool {
	return o.Stats.Due > 0 && o.Stats.Lag > Limit && !o.Stats.Paused
}

// Waits says for how long the due timers of a topic wait while no node handles it; empty:
// they do not, or less than Limit, or that is unknown.
func Waits(o wakebelltype.Overview) string {
	if grade, _ := Topic(o); o.Err != nil || grade != wakebelltype.GradeBad {
		return ""
	}
	return "no node, and due timers wait for " + o.Stats.Lag.Round(time.Second).String()
}

// Unfired says that no beat has fired the next run of a recurring schedule, which has been
// due for overdue; empty: not for longer than Limit.
func Unfired(overdue time.Duration) string {
	if overdue <= Limit {
		return ""
	}
	return "due for " + overdue.Round(time.Second).String() + ", and no beat has fired it"
}
