// Package ranked orders topics by what an operator asks for, and says which have problems.
// The dashboard and wakebell topics show its answers.
package ranked

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Orders are the names of the orders. All but "name" have the largest value first, and topics
// with the same value by name.
func Orders() []string { return []string{"name", "due", "oldest", "late", "dead", "rate"} }

// keys are the values of the orders.
var keys = map[string]func(wakebelltype.Overview) float64{
	"due":    func(o wakebelltype.Overview) float64 { return float64(o.Stats.Due) },
	"oldest": func(o wakebelltype.Overview) float64 { return o.Stats.Lag.Seconds() },
	"late":   func(o wakebelltype.Overview) float64 { return Late(o).Seconds() },
	"dead":   func(o wakebelltype.Overview) float64 { return float64(o.Stats.Dead) },
	"rate":   Rate,
}

// Known reports whether there is an order with this name.
func Known(order string) bool { return slices.Contains(Orders(), order) }

// Sort sorts topics in an order; an unknown one is that by name.
func Sort(topics []wakebelltype.Overview, order string) {
	key := keys[order]
	slices.SortFunc(topics, func(a, b wakebelltype.Overview) int {
		if key != nil {
			if c := cmp.Compare(key(b), key(a)); c != 0 {
				return c
			}
		}
		return strings.Compare(a.Topic, b.Topic)
	})
}

// Late returns how late 99 % of the timers of a topic began at most that began in the last
// [wakebelltype.RecentFor]. A mean would say little: one timer of long ago makes it years.
func Late(o wakebelltype.Overview) time.Duration { return o.Recent.LatenessQuantile(0.99) }

// Rate returns how many attempts of a topic ended in a minute, in the last
// [wakebelltype.RecentFor].
func Rate(o wakebelltype.Overview) float64 {
	return float64(o.Recent.Handled+o.Recent.Failed+o.Recent.Dead) / wakebelltype.RecentFor.Minutes()
}

// Problem says what an operator should look at in a topic, the worst only; empty: nothing. It
// is that the topic cannot be read or has lost data, that due timers wait for a node or are
// [attended.Late], an open circuit breaker, or dead letters.
func Problem(o wakebelltype.Overview) string {
	switch {
	case o.Err != nil:
		return o.Err.Error()
	case o.Damage != "":
		return o.Damage
	case attended.Waits(o) != "":
		return attended.Waits(o)
	case attended.Late(o):
		return "due timers wait for " + o.Stats.Lag.Round(time.Second).String()
	}
	for _, r := range o.Reports {
		if !r.State.BreakerSince.IsZero() {
			return "circuit breaker " + r.State.Breaker + " on " + r.Node
		}
	}
	if o.Stats.Dead > 0 {
		return fmt.Sprintf("%d dead letters", o.Stats.Dead)
	}
	return ""
}
