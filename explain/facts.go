package explain

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

// facts are what was read of a timer and its topic.
type facts struct {
	now       time.Time
	topic, id string

	timer    wakebell.Info // zero: it is not stored
	expiry   time.Duration // within which it must begin; 0: none is known
	overview wakebelltype.Overview
	moving   bool
	attempts []wakebelltype.Attempt
	joined   *join    // of the timer; nil: it has none
	waiters  []string // joins of which it is a part
	changes  []wakebelltype.AuditEntry
	letter   *wakebell.DeadLetter
	alive    []wakebelltype.NodeAnswer // of the nodes of the topic, for a leased timer

	first   []wakebell.Info // of the topic, by Due
	running []wakebell.Info
}

// present explains a timer that is stored.
func (f facts) present() Explanation {
	e := Explanation{State: string(f.timer.State), Waits: f.waits(), Commands: []string{f.command("history", f.id)}}
	switch {
	case f.timer.State == wakebell.StateRunning && len(e.Waits) > 0:
		e.Summary = "it waits: " + e.Waits[0].Text
		if e.Waits[0].Cause == CauseNoNode {
			e.Summary += "; the lease expires at " + f.timer.Due.UTC().Format(time.RFC3339)
		}
		e.Summary += f.joinText(nil)
		return e
	case f.timer.State == wakebell.StateRunning:
		e.Summary = fmt.Sprintf("a handler%s has it: attempt %d", f.on(f.id), f.timer.Attempts) + f.joinText(nil)
		e.Commands = append(e.Commands, f.command("tail"))
		return e
	case len(e.Waits) == 0:
		e.Summary = "it is due and about to run"
	default:
		e.Summary = "it waits: " + e.Waits[0].Text
	}
	e.Summary += f.joinText(e.Waits)
	if f.expiry > 0 && f.timer.Attempts == 0 && f.timer.LastError == "" {
		e.Summary += fmt.Sprintf("; it expires if it does not begin within %s of %s", f.expiry, f.timer.Activation.UTC().Format(time.RFC3339))
	}
	e.Commands = append(e.Commands, f.command("run-now", f.id))
	e.Earliest = earliest(f.now, e.Waits)
	return e
}

// run is the handler of the timer's present attempt, if a node has reported it. The report of a
// node that had it before may live on.
func (f facts) run() (run wakebelltype.NodeRun, found bool) {
	run, found = f.overview.Run(f.id)
	return run, found && run.Attempt >= f.timer.Attempts
}

// on names the node that has a timer that runs: the one that has reported it, or the only
// one that handles the topic, unless it has started since the lease was extended last.
func (f facts) on(id string) string {
	run, found := f.overview.Run(id)
	if id == f.id {
		run, found = f.run()
	}
	if found {
		return " on " + path.Dir(run.Node)
	}
	if len(f.overview.Reports) != 1 || f.overview.Nodes != 1 {
		return ""
	}
	r := f.overview.Reports[0]
	leased := tuning.InForce(tuning.Override(r.State.Options, f.overview.Control.Settings)).LeaseTTL
	if extended := f.timer.Due.Add(-leased); id == f.id && extended.Before(r.State.Started) {
		return ""
	}
	return " on " + path.Dir(r.Node)
}

// earliest is when the last of some waits ends, if all end by themselves.
func earliest(now time.Time, waits []Wait) time.Time {
	last := now
	for _, w := range waits {
		if w.Until.IsZero() {
			return time.Time{}
		}
		if w.Until.After(last) {
			last = w.Until
		}
	}
	return last
}

// absent explains a timer that is not stored.
func (f facts) absent() Explanation {
	if f.letter != nil {
		return Explanation{
			State:    StateDead,
			Summary:  fmt.Sprintf("it became a dead letter after %d attempts: %s", f.letter.Attempts, f.letter.Reason),
			Commands: []string{f.command("dead show", f.letter.Entry), f.command("dead redrive", f.letter.Entry)},
		}
	}
	if n := len(f.attempts); n > 0 {
		last := f.attempts[n-1]
		e := Explanation{State: StateEnded, Summary: "it is not stored any more; its last attempt " + outcomeText(last.Outcome)}
		if !last.Final() {
			e.Summary = "it was removed after an attempt that " + outcomeText(last.Outcome)
		}
		return e
	}
	e := Explanation{
		State: StateUnknown,
		Summary: "nothing is stored of it: it was never scheduled, was cancelled, or was handled at its first attempt, " +
			"which nodes record with --history all only",
		Commands: []string{f.command("ls")},
	}
	if o := f.overview; o.Err == nil && o.Nodes == 0 && o.Stats.Total == 0 && o.Stats.Dead == 0 {
		e.Summary = "its topic has no timers, no dead letters and no node: is the name right?"
		e.Commands = []string{"topics"}
	}
	return e
}

// command is a command about the topic.
func (f facts) command(name string, args ...string) string {
	words := []string{name, "--topic", text.ShellWord(f.topic)}
	for _, arg := range args {
		words = append(words, text.ShellWord(arg))
	}
	return strings.Join(words, " ")
}

// limits are those in force.
func (f facts) limits() wakebelltype.Settings { return tuning.OfTopic(f.overview) }

// past is what happened to the timer, and what operators did with its topic since it is
// known, or in the last day.
func (f facts) past() []Step {
	const unknown, accuracy = 24 * time.Hour, 5 * time.Millisecond // of the history
	since, instant := f.now.Add(-unknown), f.timer.Activation
	var steps []Step
	if !instant.IsZero() && !instant.After(f.now) {
		steps = append(steps, Step{At: instant, Text: "the instant for which it was scheduled"})
		since = earlier(since, instant)
	}
	for _, a := range f.attempts {
		if early := instant.Sub(a.Started); early > 0 && early < accuracy { // no attempt begins before its instant
			a.Started = instant
		}
		steps = append(steps, Step{At: a.Started, Text: attemptText(a)})
		since = earlier(since, a.Started)
	}
	if run, found := f.overview.Run(f.id); found && f.timer.State == wakebell.StateRunning {
		steps = append(steps, Step{At: run.Since, Text: fmt.Sprintf("attempt %d began on %s", run.Attempt, path.Dir(run.Node))})
	}
	if f.letter != nil {
		since = earlier(since, f.letter.Activation)
		steps = append(steps, Step{At: f.letter.Died, Text: "became a dead letter"})
	}
	for _, c := range f.changes {
		if f.concerns(c) && !c.At.Before(since) {
			steps = append(steps, Step{At: c.At, Text: changeText(c)})
		}
	}
	sortSteps(steps)
	return steps
}

func sortSteps(steps []Step) {
	slices.SortStableFunc(steps, func(a, b Step) int { return a.At.Compare(b.At) })
}

func earlier(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// concerns reports whether a change concerned the whole topic, or names the timer.
func (f facts) concerns(c wakebelltype.AuditEntry) bool {
	switch c.Operation {
	case wakebelltype.AuditTopicSchedule, wakebelltype.AuditTopicCancel, wakebelltype.AuditTopicReschedule, wakebelltype.AuditTopicRunNow:
		return strings.Contains(c.Detail, f.id)
	default:
		return true
	}
}

func attemptText(a wakebelltype.Attempt) string {
	said := fmt.Sprintf("attempt %d on %s %s", a.Attempt, cmp.Or(a.Node, "an unknown node"), outcomeText(a.Outcome))
	if a.Took > 0 {
		said += " after " + a.Took.Round(time.Millisecond).String()
	}
	if a.Error != "" {
		said += ": " + a.Error
	}
	return said
}

// outcomeText says how an attempt ended.
func outcomeText(o wakebelltype.EventKind) string {
	switch o {
	case wakebelltype.EventAcked:
		return "succeeded"
	case wakebelltype.EventRetried:
		return "failed"
	case wakebelltype.EventSnoozed:
		return "snoozed it"
	case wakebelltype.EventExpired:
		return "did not begin, because it was too late"
	case wakebelltype.EventDead:
		return "made it a dead letter"
	case wakebelltype.EventDiscarded:
		return "rejected it"
	case wakebelltype.EventCrashed:
		return "crashed"
	case wakebelltype.EventSuperseded:
		return "was superseded by a new schedule"
	case wakebelltype.EventCancelled:
		return "was cancelled"
	case wakebelltype.EventLost:
		return "lost its lease"
	default:
		return "ended as " + string(o)
	}
}

func changeText(c wakebelltype.AuditEntry) string {
	_, verb, _ := strings.Cut(strings.ReplaceAll(string(c.Operation), "_", " "), ".")
	said := fmt.Sprintf("%s by %s", verb, cmp.Or(c.By, c.From, "someone"))
	if detail := strings.TrimPrefix(c.Detail, "by: "+c.By+", "); detail != "" {
		said += ": " + detail
	}
	return said
}
