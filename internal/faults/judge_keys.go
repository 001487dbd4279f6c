package faults

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell"
)

// Limits are the limits of a topic over all nodes; zero: none.
type Limits struct {
	PerKey      int
	RateLimit   int // in each RatePer
	RatePer     time.Duration
	RateBurst   int
	KeyRate     int // of each key in each KeyPer
	KeyPer      time.Duration
	KeyBurst    int
	MaxInFlight int

	// Places has where nodes handle the topic, if not all do in one place: the limits of
	// the topic hold in each, and those of keys in all together.
	Places map[string]string `json:"-"`
	// Renewed is how many times the bursts may have been full anew, because the topic got
	// other shards.
	Renewed int `json:"-"`
	// Lowered says that PerKey was lower for a while. A timer that was due for its next
	// attempt then, while too many held its key, no longer holds it.
	Lowered bool `json:"-"`
}

func (l Limits) options() (options []wakebell.HandlerOption) {
	if l.RateLimit > 0 {
		options = append(options, wakebell.RateLimit(l.RateLimit, l.RatePer, l.RateBurst))
	}
	if l.KeyRate > 0 {
		options = append(options, wakebell.RateLimitByKey(l.KeyRate, l.KeyPer, l.KeyBurst))
	}
	return append(options, wakebell.PerKey(l.PerKey), wakebell.MaxInFlight(l.MaxInFlight))
}

// KeyOf returns the key of a timer of the scenario keys: its id up to the slash.
func KeyOf(id string) string {
	key, _, _ := strings.Cut(id, "/")
	return key
}

// JudgeLimits applies the rules for limits; the package's documentation has them. Each
// timer has the key KeyOf its id, and was settled in the end. The order is judged of keys
// whose timers were scheduled by one acknowledged call each, one after another.
func (l *DeliveryLog) JudgeLimits(limits Limits) *Judgement {
	l.mu.Lock()
	defer l.mu.Unlock()
	j := &limitJudge{
		Judgement: &Judgement{}, evidence: newEvidence(l.faults, l.TTL), started: map[string][]time.Time{}, ofKey: map[string][]change{},
		places: limits.Places, startedIn: map[string][]time.Time{}, leasesIn: map[string][]change{},
	}
	byKey := map[string][]*keyedTimer{}
	for _, id := range slices.Sorted(maps.Keys(l.timers)) {
		if t := j.keyed(l.timers[id]); t != nil {
			byKey[KeyOf(id)] = append(byKey[KeyOf(id)], t)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		switch {
		case limits.PerKey == 0:
		case slices.ContainsFunc(byKey[key], func(t *keyedTimer) bool { return len(t.Calls) > 1 }):
			j.atOnce("timers of the key "+key, j.ofKey[key], limits.PerKey)
		default:
			j.inOrder(byKey[key], limits)
		}
		j.rate("key "+key, j.started[key], limits.KeyRate, limits.KeyBurst, limits.KeyPer)
	}
	for place, started := range j.startedIn {
		j.rate("topic", started, limits.RateLimit, limits.RateBurst*(1+limits.Renewed), limits.RatePer)
		if limits.MaxInFlight > 0 {
			j.atOnce("leases", j.leasesIn[place], limits.MaxInFlight)
		}
	}
	return j.Judgement
}

type limitJudge struct {
	*Judgement
	*evidence
	started map[string][]time.Time // the instants of claims, by key
	ofKey   map[string][]change    // of the number of leases, by key

	places    map[string]string // of nodes
	startedIn map[string][]time.Time
	leasesIn  map[string][]change
}

// change is a change of the number of leases.
type change struct {
	at  time.Time
	by  int
	run *Run
	of  *Timer
}

// keyedTimer is a timer with the time for which it holds its key.
type keyedTimer struct {
	*Timer
	due               time.Time
	called, scheduled time.Time // around its schedule
	first, last       *Run
}

func (j *limitJudge) keyed(t *Timer) *keyedTimer {
	if len(t.Calls) == 0 || len(t.Runs) == 0 {
		return nil
	}
	slices.SortStableFunc(t.Runs, func(a, b *Run) int { return a.Delivered.Compare(b.Delivered) })
	for i, r := range t.Runs {
		if j.delayed(r) {
			continue
		}
		key, place := KeyOf(t.ID), j.places[r.Node]
		j.started[key] = append(j.started[key], r.Delivered)
		j.startedIn[place] = append(j.startedIn[place], r.Delivered)
		end := r.Delivered.Add(j.ttl)
		if !r.Ended.IsZero() && r.Ended.Before(end) {
			end = r.Ended.Truncate(time.Microsecond)
		}
		if i+1 < len(t.Runs) && t.Runs[i+1].Delivered.Before(end) {
			end = t.Runs[i+1].Delivered
		}
		if taken, ok := t.taken(r); ok && taken.Before(end) {
			end = taken
		}
		if end.After(r.Delivered) {
			lease := []change{{r.Delivered, 1, r, t}, {end, -1, r, t}}
			j.ofKey[key] = append(j.ofKey[key], lease...)
			j.leasesIn[place] = append(j.leasesIn[place], lease...)
		}
	}
	return &keyedTimer{Timer: t, due: t.Calls[0].Due, called: t.Calls[0].Called, scheduled: t.Calls[0].Returned, first: t.Runs[0], last: t.Runs[len(t.Runs)-1]}
}

// taken returns the start of the call that has ended the lease of a run, because it found
// the timer running: its handler may go on for a while.
func (t *Timer) taken(r *Run) (at time.Time, ok bool) {
	generation := t.generationOf(r)
	for _, c := range t.Calls {
		ends := c.Generation > generation || c.Generation == generation && c.Kind == CallCancel
		if ends && c.Found == FoundRunning && (!ok || c.Called.Before(at)) {
			at, ok = c.Called, true
		}
	}
	return at, ok
}

// delayed reports whether the claim of a run may be older than the instant that the run
// has: the first answer to it was lost, or did not reach its node for a while.
func (j *limitJudge) delayed(r *Run) bool {
	for _, kind := range []FaultKind{Stop, Stall, Outage} {
		if _, ok := j.find(r.Node, r.Delivered.Add(-j.ttl/2), r.Delivered, kind); ok {
			return true
		}
	}
	return !j.claimed(r).Equal(r.Delivered)
}

// holds reports whether the timer had been claimed at an instant, and was not settled: a
// settlement comes after the end of the last handler.
func (t *keyedTimer) holds(at time.Time) bool {
	return !t.first.Delivered.After(at) && t.last.Ended.Truncate(time.Microsecond).After(at)
}

// waitsAgain reports whether a timer that was claimed waits for its next attempt at an
// instant: its last handler has ended, or its lease has expired.
func (j *limitJudge) waitsAgain(t *keyedTimer, at time.Time) bool {
	last := t.first
	for _, r := range t.Runs {
		if !r.Delivered.After(at) {
			last = r
		}
	}
	return !last.Ended.IsZero() && last.Ended.Before(at) || last.Delivered.Add(j.ttl).Before(at)
}

// inOrder judges the timers of a key: when one is claimed for the first time, all before it
// have been claimed, and at most PerKey hold the key with it. A timer that waits for a
// token holds the key already, so those before it that were scheduled after it was due
// may come later. So may those whose leases went back before a handler began, as long as
// each of them had a place of its own.
func (j *limitJudge) inOrder(timers []*keyedTimer, limits Limits) {
	slices.SortStableFunc(timers, func(a, b *keyedTimer) int { return cmp.Or(a.due.Compare(b.due), a.called.Compare(b.called)) })
	for i, t := range timers {
		at := t.first.Delivered
		var overtaken, holders []*keyedTimer
		for n, other := range timers {
			switch {
			case n != i && other.holds(at) && (!limits.Lowered || !j.waitsAgain(other, at)):
				holders = append(holders, other)
			case n < i && j.waited(other, at) && (limits.KeyRate == 0 || !other.scheduled.After(t.due)):
				overtaken = append(overtaken, other)
			}
		}
		for _, other := range overtaken {
			if 1+len(holders)+len(overtaken) > limits.PerKey || !j.wentBack(other, at) {
				j.unordered(fmt.Sprintf("%s overtook %s", t.ID, other.ID), other, t)
			}
		}
		if with := 1 + len(holders); with > limits.PerKey {
			j.unordered(fmt.Sprintf("%s is one of %d timers that hold the key", t.ID, with), append(holders, t)...)
		}
	}
}

// waited reports whether a timer was scheduled and not yet claimed at an instant. If its
// first run is a later attempt, there were claims that reached no handler.
func (j *limitJudge) waited(t *keyedTimer, at time.Time) bool {
	return !t.scheduled.After(at) && t.first.Delivered.After(at) && t.first.Attempt == 1 && !j.delayed(t.first)
}

// wentBack reports whether a node may have had a lease of the timer at an instant, and
// returned it: one that receives its claim after half of the lease, because it was
// suspended or the answer was lost, returns it before a handler begins. That undoes the
// claim, and no node prints it.
func (j *limitJudge) wentBack(t *keyedTimer, at time.Time) bool {
	late := []FaultKind{Stop, Stall, Outage, LostReply, Reset, Slow, Drain}
	return slices.ContainsFunc(j.faults, func(f Fault) bool {
		return slices.Contains(late, f.Kind) && f.overlaps(at.Add(-j.ttl), t.first.Delivered)
	})
}

func (j *limitJudge) unordered(what string, timers ...*keyedTimer) {
	j.Unordered++
	var histories strings.Builder
	for _, t := range timers {
		histories.WriteString(t.History(j.faults))
	}
	j.Violations = append(j.Violations, what+"\n"+histories.String())
}

// rate judges whether in some span of time more was claimed than burst + rate × span; n
// is 0 without a rate. Claims that were delayed are not counted, because their instants
// are not known.
func (j *limitJudge) rate(of string, started []time.Time, n, burst int, per time.Duration) {
	if n == 0 {
		return
	}
	slices.SortFunc(started, time.Time.Compare)
	step := per.Seconds() / float64(n)
	least, from, most, span := 0.0, 0, 0.0, [2]int{}
	for i, at := range started {
		tokens := float64(i) - at.Sub(started[0]).Seconds()/step // claims before it, beyond the rate
		if i == 0 || tokens < least {
			least, from = tokens, i
		}
		if over := tokens + 1 - least; over > most {
			most, span = over, [2]int{from, i}
		}
	}
	const rounding = 0.01 // instants are in µs
	if most > float64(burst)+rounding {
		j.Exceeded++
		j.Violations = append(j.Violations, fmt.Sprintf("%d timers of the %s started from %s to %s, %.1f more than the rate; the burst is %d",
			span[1]-span[0]+1, of, clock(started[span[0]]), clock(started[span[1]]), most, burst))
	}
}

// atOnce judges how many leases there were at once. A lease is held until its handler
// ends, but not counted for longer than it lasts without an extension.
func (j *limitJudge) atOnce(of string, leases []change, limit int) {
	slices.SortFunc(leases, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	now, most, when, last := 0, 0, time.Time{}, 0
	for i, c := range leases {
		if now += c.by; now > most {
			most, when, last = now, c.at, i
		}
	}
	if most > limit {
		j.Exceeded++
		j.Violations = append(j.Violations, fmt.Sprintf("%d %s at %s; the limit is %d\n%s", most, of, clock(when), limit, j.held(leases[:last+1])))
	}
}

// held describes the timers whose leases have begun and not ended.
func (j *limitJudge) held(leases []change) string {
	var timers strings.Builder
	for i, c := range leases {
		ended := func(e change) bool { return e.run == c.run && e.by < 0 }
		if c.by > 0 && !slices.ContainsFunc(leases[i:], ended) {
			timers.WriteString(c.of.History(j.faults))
		}
	}
	return timers.String()
}
