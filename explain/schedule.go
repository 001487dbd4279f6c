package explain

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Schedule explains a recurring schedule. c tells what operators changed, and whether nodes
// handle its topic. Errors are those of Get, such as recurring.ErrNotFound.
func Schedule(ctx context.Context, s recurring.Operator, c Client, name string) (Explanation, error) {
	state, err := s.Get(ctx, name)
	if err != nil {
		return Explanation{}, err
	}
	r := &reader{ctx: ctx, Client: c, topic: state.Topic}
	var o wakebelltype.Overview
	if o.Nodes = -1; state.Fault == "" && !state.Celery {
		o = r.overview()
	}
	e := ofSchedule(state, o)
	if !state.LastRun.IsZero() {
		e.Past = append(e.Past, Step{At: state.LastRun, Text: fmt.Sprintf("run %d", state.Runs)})
	}
	prefix := strings.TrimSuffix(o.Topic, state.Topic) // the audit has full names
	for _, change := range r.changesOf("schedule", prefix+name) {
		e.Past = append(e.Past, Step{At: change.At, Text: changeText(change)})
	}
	sortSteps(e.Past)
	e.Unread = r.unread
	return e, ctx.Err()
}

// ofSchedule explains the state of a recurring schedule.
func ofSchedule(s recurring.State, o wakebelltype.Overview) Explanation {
	name := text.ShellWord(s.Name)
	e := Explanation{State: StateWaits, Commands: []string{"schedules show " + name, "schedules preview " + name}}
	switch {
	case s.Fault != "":
		e.State, e.Summary = StateOverdue, "its entry cannot be read, so it does not fire"
		e.Waits = []Wait{{Cause: CauseFault, Text: s.Fault, Do: "schedules put --help"}}
		return e
	case s.Paused:
		e.State, e.Summary = StatePaused, "it is paused"
		e.Waits = []Wait{{Cause: CausePaused, Text: "it is paused", Do: "schedules resume " + name}}
	case s.Next.IsZero():
		e.State, e.Summary = StateFinished, "its rule has no further run"
	case s.Overdue > attended.Limit:
		e.State, e.Summary = StateOverdue, "its next run is "+attended.Unfired(s.Overdue)
		said := "no beat has fired it: none runs, none has its prefix, or none reaches Redis"
		if s.Rule.Overlap == recurring.OverlapQueue {
			said += "; or its last run has not ended"
		}
		e.Waits = []Wait{{Cause: CauseNoBeat, Text: said, Since: s.Next, Do: "doctor"}}
	default:
		e.Summary = "its next instant has not come"
		e.Waits, e.Earliest = []Wait{{Cause: CauseNotDue, Text: e.Summary, Until: s.Next, Do: "schedules run-now " + name}}, s.Next
	}
	if o.Nodes == 0 && o.Err == nil {
		e.Waits = append(e.Waits, Wait{Cause: CauseNoNode, Text: "no node handles its topic, so its runs wait", Do: "node --help"})
		e.Earliest = time.Time{}
	}
	return e
}
