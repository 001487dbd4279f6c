package attended

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// Window is how far back the counts of a topic are read, in minutes.
	Window = 30
	// deadMost is how many new dead letters in Window are no finding, as of the alert.
	deadMost = 5
)

// Verdict is the result of a check.
type Verdict struct {
	Grade     wakebelltype.Grade
	Found, Do string
}

func good(found string) Verdict { return Verdict{Grade: wakebelltype.GradeGood, Found: found} }

// Progress grades whether the due timers of a topic are handled, where nodes handle it.
func Progress(o wakebelltype.Overview) Verdict {
	due := fmt.Sprintf("%d timers are due", o.Stats.Due)
	if o.Stats.Due > 0 {
		due += ", the first for " + o.Stats.Lag.Round(time.Second).String()
	}
	if o.Stats.Parked > 0 {
		due += fmt.Sprintf("; %d wait for their keys", o.Stats.Parked)
	}
	switch {
	case o.Stats.Paused:
		return good("paused; " + due)
	case !Late(o), o.Nodes == 0:
		return good(due)
	}
	for _, r := range o.Reports {
		if r.State.Breaker == "open" {
			return Verdict{
				Grade: wakebelltype.GradeWarn, Found: fmt.Sprintf("%s; the circuit breaker of %s is open: %s", due, r.Node, r.State.BreakerReason),
				Do: "repair what the handler calls: the breaker tries a timer now and then, and closes by itself",
			}
		}
	}
	if long := long(o); len(long) > 0 && int64(len(long)) >= min(o.Stats.Leased, reported) {
		return Verdict{
			Grade: wakebelltype.GradeWarn,
			Found: fmt.Sprintf("stuck: %s, and %d handlers run, the first, of %s on %s, since %s",
				due, o.Stats.Leased, text.Clip(long[0].ID, 100), long[0].Node, long[0].Since.Format(time.RFC3339)),
			Do: "wakebell ls --running shows them; retune --max-lease-age ends handlers that run longer",
		}
	}
	return Verdict{
		Grade: wakebelltype.GradeWarn, Found: "late: " + due + fmt.Sprintf("; %d run", o.Stats.Leased),
		Do: "wakebell explain says why a timer waits; add nodes, or raise max-concurrent or the limits of the topic",
	}
}

// reported is how many handlers a node reports at most.
const reported = 10

// long returns the handlers that run for longer than Limit, as far as nodes have reported them.
func long(o wakebelltype.Overview) []wakebelltype.NodeRun {
	now := o.Stats.OldestDue.Add(o.Stats.Lag) // by Redis's clock
	return slices.DeleteFunc(o.Longest(), func(r wakebelltype.NodeRun) bool { return now.Sub(r.Since) <= Limit })
}

// Dead grades whether dead letters grow: all is how many there are.
func Dead(all int64, counts wakebelltype.Throughput) Verdict {
	grown := int64(0)
	for _, p := range counts.Points {
		grown += p.Dead
	}
	v := good(fmt.Sprintf("%d dead letters, %d of the last %d min", all, grown, Window))
	if grown > deadMost {
		v.Grade, v.Do = wakebelltype.GradeWarn, "wakebell dead ls shows why; redrive them when the cause is repaired"
	}
	return v
}

// Settings grades whether the nodes of a topic have the same settings, except for those that
// are overridden.
func Settings(nodes []wakebelltype.NodeReport, over wakebelltype.Settings) Verdict {
	var differ []string
	for _, t := range tuning.All {
		if t.Get(&over) != 0 {
			continue
		}
		of := map[string]int{}
		for _, n := range nodes {
			if !n.State.Started.IsZero() { // nodes of earlier versions do not say it
				of[t.Text(t.Get(&n.State.Options))]++
			}
		}
		if len(of) > 1 {
			differ = append(differ, t.Name+" "+counted(of))
		}
	}
	if len(differ) == 0 {
		return good(fmt.Sprintf("%d nodes answered, with the same settings", len(nodes)))
	}
	return Verdict{
		Grade: wakebelltype.GradeWarn, Found: "differ: " + strings.Join(differ, "; "),
		Do: "end the rollout, or give all nodes the same options; wakebell retune overrides them on all",
	}
}

// Versions grades whether all nodes have the same version. Answers are of several topics.
func Versions(answers [][]wakebelltype.NodeReport) Verdict {
	versions := map[string]string{}
	for _, nodes := range answers {
		for _, n := range nodes {
			v := n.State.Version
			if v == "" {
				v = "unknown"
			}
			versions[n.Node+n.State.Started.String()] = v
		}
	}
	of := map[string]int{}
	for _, v := range versions {
		of[v]++
	}
	switch len(of) {
	case 0:
		return good("no node answered")
	case 1:
		return good(counted(of))
	}
	return Verdict{Grade: wakebelltype.GradeWarn, Found: "differ: " + counted(of), Do: "end the rollout: docs/compatibility.md says what nodes of two versions do together"}
}

// counted lists values with the number of nodes that have each.
func counted(of map[string]int) string {
	var parts []string
	for _, value := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%s (%d nodes)", value, of[value]))
	}
	return strings.Join(parts, ", ")
}
