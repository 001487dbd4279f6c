package rights

import (
	"slices"
	"strings"

	"github.com/wakebell/wakebell/internal/argument"
)

// Action is what a right allows. No action includes another.
type Action string

// The actions.
const (
	// ActionSchedule allows to create and change timers, messages and recurring
	// schedules.
	ActionSchedule Action = "schedule"
	// ActionHandle allows to subscribe to a topic or queue, and to take turns at a gate.
	ActionHandle Action = "handle"
	// ActionRead allows to read something and to see it in listings.
	ActionRead Action = "read"
	// ActionOperate allows to pause, override, redrive, purge, repair and so on.
	ActionOperate Action = "operate"
)

// Kind is the type of the object that a right is for.
type Kind string

// The kinds.
const (
	KindTopic    Kind = "topic"
	KindQueue    Kind = "queue"
	KindGate     Kind = "gate"
	KindSchedule Kind = "schedule" // a recurring schedule
)

var (
	actions    = []Action{ActionSchedule, ActionHandle, ActionRead, ActionOperate}
	rightKinds = []Kind{KindTopic, KindQueue, KindGate, KindSchedule}
)

// anyPrincipal is the principal of rights granted to all callers, including callers
// without credentials.
const anyPrincipal = "*"

// grant allows a principal some actions on the names that match a pattern.
type grant struct {
	principal string
	actions   []Action
	kind      Kind
	pattern   string
	line      int // line number in the file
}

// Grants are the rights of all principals. Everything that no line of Parse grants
// is denied. Grants are immutable and safe for concurrent use.
type Grants struct {
	grants map[string][]grant // by principal
	count  int
}

func newRights(grants []grant) *Grants {
	r := &Grants{grants: map[string][]grant{}, count: len(grants)}
	for _, g := range grants {
		r.grants[g.principal] = append(r.grants[g.principal], g)
	}
	return r
}

func (g grant) validate() error {
	switch {
	case g.principal == "":
		return argument.Invalid("principal", "empty, want the name of a token or certificate, or %s", anyPrincipal)
	case len(g.actions) == 0:
		return argument.Invalid("actions", "none, want some of %s", listed("", actions))
	case !slices.Contains(rightKinds, g.kind):
		return argument.Invalid("kind", "%q, want one of %s", g.kind, listed("", rightKinds))
	case g.pattern == "":
		return argument.Invalid("pattern", "empty, want a name, in which * stands for any text")
	}
	for _, a := range g.actions {
		if !slices.Contains(actions, a) {
			return argument.Invalid("action", "%q, want one of %s", a, listed("", actions))
		}
	}
	return nil
}

func listed[T ~string](before string, all []T) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = before + string(one)
	}
	return strings.Join(texts, ", ")
}

// Len returns the number of granted patterns. A line can grant several.
func (r *Grants) Len() int { return r.count }

// Allow reports whether a principal may perform an action on a name, and the number
// of the line that grants it, counted from 1. The name is without the System's
// prefix.
func (r *Grants) Allow(principal string, action Action, kind Kind, name string) (line int, ok bool) {
	g, ok := r.find(principal, action, kind, func(pattern string) bool { return matches(pattern, name) })
	return g.line, ok
}

// Check is Allow for text input: an action, and a kind and a name separated by a
// colon, as in topic:invoices. The error wraps wakebell.ErrInvalid if the action or
// the kind does not exist.
func (r *Grants) Check(principal, action, what string) (line int, ok bool, err error) {
	kind, name, colon := strings.Cut(what, ":")
	switch {
	case !slices.Contains(actions, Action(action)):
		return 0, false, argument.Invalid("action", "%q, want one of %s", action, listed("", actions))
	case !colon || !slices.Contains(rightKinds, Kind(kind)):
		return 0, false, argument.Invalid("name", "%q, want one of %s with a name behind its colon", what, listed("", withColon()))
	}
	line, ok = r.Allow(principal, Action(action), Kind(kind), name)
	return line, ok, nil
}

// AllowAll reports whether a principal may perform an action on every name of a
// kind.
func (r *Grants) AllowAll(principal string, action Action, kind Kind) bool {
	_, ok := r.find(principal, action, kind, func(pattern string) bool { return strings.Trim(pattern, "*") == "" })
	return ok
}

func (r *Grants) find(principal string, action Action, kind Kind, is func(pattern string) bool) (grant, bool) {
	for _, p := range []string{principal, anyPrincipal} {
		for _, g := range r.grants[p] {
			if g.kind == kind && slices.Contains(g.actions, action) && is(g.pattern) {
				return g, true
			}
		}
	}
	return grant{}, false
}

// matches reports whether a name matches a pattern. The number of steps is at most
// the product of their lengths.
func matches(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	at, of := 0, 0         // positions in name and pattern
	star, retried := -1, 0 // positions of the last * in the pattern, and of its last attempt in the name
	for at < len(n) {
		literal, next := of, of+1
		if of < len(p) && p[of] == '\\' && of+1 < len(p) {
			literal, next = of+1, of+2
		}
		switch {
		case of < len(p) && literal == of && p[of] == '*':
			star, retried = of, at
			of++
		case of < len(p) && (p[literal] == n[at] || (literal == of && p[of] == '?')):
			at, of = at+1, next
		case star >= 0:
			retried++
			at, of = retried, star+1
		default:
			return false
		}
	}
	for of < len(p) && p[of] == '*' {
		of++
	}
	return of == len(p)
}
