package explain

import (
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

// waits are the reasons for which a stored timer does not run. Those of its own come first
// while its instant has not come, and those of its topic when it has.
func (f facts) waits() []Wait {
	t := f.timer
	switch t.State {
	case wakebell.StateRunning:
		if o := f.overview; o.Nodes == 0 && o.Err == nil {
			return []Wait{{Cause: CauseNoNode, Text: "no node is seen at its topic: the one that leased it is gone, or cut off", Do: "node --help"}}
		}
		if text := f.abandoned(); text != "" {
			return []Wait{{Cause: CauseNoNode, Text: text, Do: f.command("tail")}}
		}
		return f.inKeyRun()
	case wakebell.StateNever:
		return []Wait{{Cause: CauseNever, Text: "its instant is infinite, which another program has written", Do: f.command("run-now", f.id)}}
	}
	topic := f.ofTopic()
	own := f.own(len(topic) > 0)
	if t.State == wakebell.StateParked || t.IsDue(f.now) {
		return slices.Concat(topic, own)
	}
	return slices.Concat(own, topic)
}

// abandoned says that the node that leased the timer is dead, although others handle the topic;
// empty: it is not, or that is unknown. The nodes that live all answer, and extend a lease after
// a third of it.
func (f facts) abandoned() string {
	if f.overview.Nodes <= 0 || len(f.alive) < f.overview.Nodes {
		return ""
	}
	if run, found := f.run(); found {
		node := path.Dir(run.Node)
		if !slices.ContainsFunc(f.alive, func(a wakebelltype.NodeAnswer) bool { return a.Node == node }) {
			return node + ", which leased it, does not answer: it is gone, or cut off"
		}
	}
	shortest := time.Duration(0) // lease of a node
	for _, a := range f.alive {
		if a.State == nil { // of an earlier version
			return ""
		}
		if ttl := tuning.InForce(tuning.Override(a.State.Options, f.overview.Control.Settings)).LeaseTTL; shortest == 0 || ttl < shortest {
			shortest = ttl
		}
	}
	left := f.timer.Due.Sub(f.now)
	if left >= shortest/2 {
		return ""
	}
	return fmt.Sprintf("its lease was not extended for over %s: the node that leased it is gone or cut off, or the process to which it gave the timer asks for no more time",
		(shortest - left).Round(time.Second))
}

// ofTopic are the reasons that hold for all timers of the topic.
func (f facts) ofTopic() (waits []Wait) {
	o := f.overview
	if o.Damage != "" {
		waits = append(waits, Wait{Cause: CauseDamage, Text: "data of its topic was lost: " + o.Damage, Do: "repair " + text.ShellWord(f.topic)})
	}
	if c := o.Control; c.Paused {
		said := "its topic is paused"
		if c.PausedBy != "" {
			said += " by " + c.PausedBy
		}
		if c.Reason != "" {
			said += ": " + c.Reason
		}
		waits = append(waits, Wait{Cause: CausePaused, Text: said, Since: c.PausedAt, Until: c.PausedUntil, Do: f.command("resume")})
	}
	if o.Nodes == 0 && o.Err == nil {
		waits = append(waits, Wait{Cause: CauseNoNode, Text: "no node handles its topic", Do: "node --help"})
	}
	if w, open := f.breakers(); open {
		waits = append(waits, w)
	}
	if f.moving {
		waits = append(waits, Wait{
			Cause: CauseMoving, Text: "timers of its topic move to other shards: this one may be between two of them for a moment",
			Until: f.now, Do: "topics shards " + text.ShellWord(f.topic),
		})
	}
	return waits
}

// breakers reports whether the circuit breakers of all nodes of the topic are open.
func (f facts) breakers() (w Wait, open bool) {
	w.Cause, w.Do = CauseBreaker, "topics"
	for _, r := range f.overview.Reports {
		s := r.State
		if s.BreakerSince.IsZero() {
			continue
		}
		w.Text = fmt.Sprintf("the circuit breakers of its %d nodes are not closed: %s", len(f.overview.Reports), s.BreakerReason)
		w.Since = earlierOr(w.Since, s.BreakerSince)
		w.Until = earlierOr(w.Until, s.BreakerUntil)
		open = true
	}
	closed := slices.ContainsFunc(f.overview.Reports, func(r wakebelltype.NodeReport) bool { return r.State.BreakerSince.IsZero() })
	return w, open && !closed && f.overview.Nodes <= len(f.overview.Reports)
}

// earlierOr returns the earlier of two instants; zero is none.
func earlierOr(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// own are the reasons of the timer itself. Its place among those that are due is none while
// the topic does not run.
func (f facts) own(stopped bool) []Wait {
	t, limits := f.timer, f.limits()
	switch {
	case t.State == wakebell.StateParked:
		return []Wait{f.behindKey(limits)}
	case t.IsDue(f.now):
		return f.due(limits, stopped)
	case t.Attempts == 0 && t.LastError != "":
		return []Wait{{Cause: CauseRetry, Until: t.Due, Do: f.command("history", f.id), Text: "its handler has put it off: " + t.LastError}}
	case t.Attempts == 0 && t.Key != "" && limits.KeyRateLimit > 0 && t.Due.After(t.Activation):
		return []Wait{{
			Cause: CauseKeyRate, Since: t.Activation, Until: t.Due, Do: "retune --help",
			Text: fmt.Sprintf("its key %q is limited to %s over all nodes", t.Key, rateText(limits.KeyRateLimit, limits.KeyRatePer)),
		}}
	case t.Failures > 0:
		return []Wait{{
			Cause: CauseRetry, Until: t.Due, Do: f.command("history", f.id),
			Text: fmt.Sprintf("attempt %d failed, and the next comes after the backoff: %s", t.Attempts, t.LastError),
		}}
	case t.Attempts > 0:
		return []Wait{{
			Cause: CauseRetry, Until: t.Due, Do: f.command("history", f.id),
			Text: fmt.Sprintf("attempt %d ended without an outcome", t.Attempts),
		}}
	case f.joined != nil:
		return f.ofJoin()
	default:
		return []Wait{{Cause: CauseNotDue, Until: t.Due, Text: "its instant has not come", Do: f.command("reschedule", f.id)}}
	}
}

// inKeyRun says which timer of its key a leased one waits for. With PerKey(1) only a key run has
// several leases of a key, and its node begins them in their order; which of those with equal
// instants comes first is not known.
func (f facts) inKeyRun() []Wait {
	t := f.timer
	first, found := f.firstLeased()
	if !found || f.limits().PerKey != 1 || !first.Activation.Before(t.Activation) {
		return nil
	}
	return []Wait{{
		Cause: CauseKey, Since: t.Activation, Do: f.explainOther(first),
		Text: fmt.Sprintf("a node has leased it in the key run of %q, behind %s%s", t.Key, text.Clip(first.ID, 100), f.on(first.ID)),
	}}
}

// firstLeased returns the leased timer that comes first of the others of its key.
func (f facts) firstLeased() (first wakebell.Info, found bool) {
	for _, other := range f.running {
		if other.Key == f.timer.Key && other.ID != f.timer.ID && (!found || other.Activation.Before(first.Activation)) {
			first, found = other, true
		}
	}
	return first, found
}

func (f facts) explainOther(t wakebell.Info) string {
	return "explain " + text.ShellWord(f.topic) + " " + text.ShellWord(t.ID)
}

// behindKey says which timers of its key a parked timer waits for.
func (f facts) behindKey(limits wakebelltype.Settings) Wait {
	t := f.timer
	w := Wait{Cause: CauseKey, Since: t.Activation, Do: f.command("ls")}
	w.Text = fmt.Sprintf("others of its key %q come first", t.Key)
	if limits.PerKey > 0 {
		w.Text = fmt.Sprintf("%d of its key %q may run at once, and others come first", limits.PerKey, t.Key)
	}
	w.Text += turnText(limits)
	holds := func(of string, list []wakebell.Info, ok func(wakebell.Info) bool) bool {
		for _, other := range list {
			if other.Key == t.Key && other.ID != t.ID && ok(other) {
				w.Text += fmt.Sprintf("; %s %s", text.Clip(other.ID, 100), of)
				w.Do = f.explainOther(other)
				return true
			}
		}
		return false
	}
	first, _ := f.firstLeased()
	_ = holds("runs", f.running, func(o wakebell.Info) bool { return o.ID == first.ID }) ||
		holds("waits for its next attempt, and holds the key", f.first, func(o wakebell.Info) bool { return o.State == wakebell.StateRetrying }) ||
		holds("waits for a token of the key", f.first, func(o wakebell.Info) bool {
			return o.State == wakebell.StatePending && o.Due.After(f.now) && o.Due.After(o.Activation)
		}) ||
		holds("is due before it", f.first, func(o wakebell.Info) bool { return o.IsDue(f.now) })
	return w
}

// turnText says how many timers of a key start in a turn; empty: keys take no turns.
func turnText(limits wakebelltype.Settings) string {
	if limits.FairKeys <= 0 || limits.PerKey <= 0 && limits.KeyRateLimit <= 0 {
		return ""
	}
	return fmt.Sprintf("; keys take turns of %d (FairKeys), and it waits for the turn of its key", limits.FairKeys)
}

// due are the reasons of a timer that is due and waits for a handler.
func (f facts) due(limits wakebelltype.Settings, stopped bool) (waits []Wait) {
	t, stats := f.timer, f.overview.Stats
	ahead := slices.IndexFunc(f.first, func(o wakebell.Info) bool { return o.ID == t.ID })
	before := fmt.Sprintf("%d due timers come before it", max(ahead, 0))
	if ahead < 0 {
		ahead = len(f.first)
		before = fmt.Sprintf("more than %d timers come before it", ahead)
	}
	if limits.RateLimit > 0 {
		each := limits.RatePer / time.Duration(limits.RateLimit)
		waits = append(waits, Wait{
			Cause: CauseRate, Since: t.Due, Until: f.now.Add(time.Duration(ahead) * each), Do: "retune --help",
			Text: fmt.Sprintf("its topic is limited to %s over all nodes, and %s", rateText(limits.RateLimit, limits.RatePer), before),
		})
	}
	if limits.MaxInFlight > 0 && stats.Leased >= int64(limits.MaxInFlight) {
		waits = append(waits, Wait{
			Cause: CauseInFlight, Since: t.Due, Do: "retune --help",
			Text: fmt.Sprintf("%d of at most %d timers of its topic run, and %s", stats.Leased, limits.MaxInFlight, before),
		})
	}
	if len(waits) == 0 && !stopped && (ahead > 0 || f.now.Sub(t.Due) > attended.Limit) {
		waits = append(waits, Wait{
			Cause: CauseBehind, Since: t.Due, Do: f.command("stats"),
			Text: fmt.Sprintf("%s; %d run on %s", before, stats.Leased, nodesText(f.overview.Nodes)),
		})
	}
	return waits
}

func rateText(n int, per time.Duration) string {
	return fmt.Sprintf("%d in %s", n, per)
}

func nodesText(n int) string {
	switch {
	case n < 0:
		return "an unknown number of nodes"
	case n == 1:
		return "1 node"
	default:
		return fmt.Sprintf("%d nodes", n)
	}
}
