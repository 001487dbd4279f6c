package sharding

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// AnswerLife is how long Redis stores the answer to a call with an idempotency key, in the
// physical topic that has carried it out. For as long a layout has those before it.
const AnswerLife = 24 * time.Hour

// Divided reports whether a topic has or had shards, or is about to have some.
func (l Layout) Divided() bool { return l.Count() > 1 || l.From > 0 || l.To > 0 || l.ID != "" }

// Answered returns the numbers of shards with which calls may have been carried out whose
// answers are still stored, the present one first; none if it is the only one.
func (l Layout) Answered(now time.Time) []int {
	if !l.Divided() {
		return nil
	}
	counts := []int{l.Count()}
	add := func(n int) {
		if n > 0 && !slices.Contains(counts, n) {
			counts = append(counts, n)
		}
	}
	add(l.To)
	recent := l.Moving || l.To > 0
	if recent || now.Sub(time.UnixMilli(l.Since)) < AnswerLife {
		recent = true // also if From is none: before its first announcement the topic had no layout
		add(l.From)
	}
	for _, b := range l.before(now) {
		recent = true
		add(b.shards)
	}
	if !recent {
		return nil
	}
	return counts
}

// past is a number of shards that a topic had.
type past struct {
	shards int
	until  time.Time
}

// before returns the numbers of shards before From that applied in the last AnswerLife.
func (l Layout) before(now time.Time) (all []past) {
	for text := range strings.FieldsSeq(l.Past) {
		n, at, _ := strings.Cut(text, "@")
		ms, err := strconv.ParseInt(at, 10, 64)
		if b := (past{number(n), time.UnixMilli(ms)}); err == nil && b.shards > 0 && now.Sub(b.until) < AnswerLife {
			all = append(all, b)
		}
	}
	return all
}

// past returns Past of the layout after l, each number once.
func (l Layout) past(now time.Time) string {
	all := l.before(now)
	if l.From > 0 && now.Sub(time.UnixMilli(l.Since)) < AnswerLife {
		all = slices.DeleteFunc(all, func(b past) bool { return b.shards == l.From })
		all = append(all, past{l.From, time.UnixMilli(l.Since)})
	}
	texts := make([]string, len(all))
	for i, b := range all {
		texts[i] = strconv.Itoa(b.shards) + "@" + strconv.FormatInt(b.until.UnixMilli(), 10)
	}
	return strings.Join(texts, " ")
}
