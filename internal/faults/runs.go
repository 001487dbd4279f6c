package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// afterKill is how long after a kill runs count as affected by it.
const afterKill = 2 * time.Second

// onTime is the lateness of the probe up to which the machine counts as on time.
const onTime = 5 * time.Millisecond

// runAccount records the runs of recurring schedules: the expected instants, the
// output of the beats, and the timers in Redis.
type runAccount struct {
	mu        sync.Mutex
	schedules map[string]*scheduleRuns
	kills     []time.Time // in order
	fired     []lateRun
	probes    []lateRun
	early     int
	foreign   []string // runs and timers of no schedule of the account
}

// scheduleRuns are the runs of a schedule.
type scheduleRuns struct {
	start   time.Time
	every   time.Duration
	printed map[int64]int  // how often a run was printed, by the µs of its instant
	last    time.Time      // the latest instant that was printed
	timers  map[int64]bool // by the µs of the instant
	counted int64          // the number of runs in the meta field
}

// lateRun has the instant at which something was due and the one at which it
// happened.
type lateRun struct{ due, actual time.Time }

// printedRun is a line of the output of `wakebell beat`.
type printedRun struct {
	Name    string
	Due     time.Time
	FiredAt time.Time `json:"fired_at"`
}

func newRunAccount() *runAccount { return &runAccount{schedules: map[string]*scheduleRuns{}} }

// expect records a schedule that was stored.
func (a *runAccount) expect(name string, start time.Time, every time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.schedules[name] = &scheduleRuns{start: start, every: every, printed: map[int64]int{}, timers: map[int64]bool{}}
}

// printed records a run that a beat has printed.
func (a *runAccount) printed(p printedRun) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.schedules[p.Name]
	if s == nil {
		a.foreign = append(a.foreign, "a beat fired "+p.Name)
		return
	}
	s.printed[p.Due.UnixMicro()]++
	if p.Due.After(s.last) {
		s.last = p.Due
	}
	if p.FiredAt.Before(p.Due) {
		a.early++
	}
	a.fired = append(a.fired, lateRun{p.Due, p.FiredAt})
}

func (a *runAccount) probed(due, actual time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probes = append(a.probes, lateRun{due, actual})
}

func (a *runAccount) killed(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kills = append(a.kills, at)
}

// past reports whether every schedule has been fired for an instant after at.
func (a *runAccount) past(at time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.schedules {
		if !s.last.After(at) {
			return false
		}
	}
	return true
}

// timer records the timer of a run, by its id.
func (a *runAccount) timer(id string) error {
	name, at, _ := strings.Cut(id, "@")
	instant, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return fmt.Errorf("id of a run's timer: %w", err)
	}
	s := a.schedules[name]
	if s == nil {
		a.foreign = append(a.foreign, "a topic has "+id)
		return nil
	}
	s.timers[instant.UnixMicro()] = true
	return nil
}

func (a *runAccount) counted(name string, runs int64) { a.schedules[name].counted = runs }

// judge compares the runs with the instants of the schedules.
func (a *runAccount) judge() *Judgement {
	a.mu.Lock()
	defer a.mu.Unlock()
	j := &Judgement{Early: a.early, Illegal: len(a.foreign), Violations: slices.Clone(a.foreign)}
	for _, name := range slices.Sorted(maps.Keys(a.schedules)) {
		s := a.schedules[name]
		j.Timers += len(s.timers)
		missing, offGrid := s.compare()
		repeated := s.repeated()
		j.Scheduled += len(s.timers) + missing - offGrid
		j.Deliveries += int(s.counted)
		j.Lost += missing
		j.Illegal += offGrid
		j.Repeated += repeated
		j.Uncaused += repeated
		if missing+offGrid+repeated > 0 {
			j.Violations = append(j.Violations, fmt.Sprintf("%s, every %v: %d instants have no timer, %d timers have no instant, %d runs were repeated",
				name, s.every, missing, offGrid, repeated))
		}
	}
	return j
}

// compare counts the instants without a timer, up to the last one with a timer, and
// the timers at no instant of the schedule.
func (s *scheduleRuns) compare() (missing, offGrid int) {
	last := s.start.UnixMicro()
	for at := range s.timers {
		last = max(last, at)
	}
	due := 0
	for at := s.start; at.UnixMicro() <= last; at = at.Add(s.every) {
		if due++; !s.timers[at.UnixMicro()] {
			missing++
		}
	}
	return missing, len(s.timers) - (due - missing)
}

// repeated counts the runs that were fired more than once. They have the same timer
// id, so the timeline does not show them; the number of runs and the output of the
// beats do.
func (s *scheduleRuns) repeated() int {
	printed := 0
	for _, times := range s.printed {
		printed += times - 1
	}
	return max(printed, int(s.counted)-len(s.timers), 0)
}

// notes describes the lateness of the runs and of the probe.
func (a *runAccount) notes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	timers := 0
	for _, s := range a.schedules {
		timers += len(s.timers)
	}
	fired, probes := a.split(a.fired), a.split(a.probes)
	return []string{
		fmt.Sprintf("%d schedules, %d runs, %d of them not printed because their beat was killed", len(a.schedules), timers, timers-len(a.fired)),
		fmt.Sprintf("lateness, away from kills: %s", spread(fired.away)),
		fmt.Sprintf("lateness, due up to %v after a kill: %s", afterKill, spread(fired.after)),
		fmt.Sprintf("lateness, away from kills, while that of the probe was at most %v: %s", onTime, spread(fired.onTime)),
		fmt.Sprintf("lateness of the probe, away from kills: %s; after a kill: %s", spread(probes.away), spread(probes.after)),
	}
}

// lateness has the lateness of runs by their distance from kills.
type lateness struct {
	away, after []time.Duration // from kills
	onTime      []time.Duration // the part of away while the machine was on time
}

// split returns the lateness of runs. It skips those that were due before the first
// probe.
func (a *runAccount) split(runs []lateRun) (l lateness) {
	for _, r := range runs {
		if len(a.probes) == 0 || r.due.Before(a.probes[0].due) {
			continue
		}
		late := r.actual.Sub(r.due)
		kill, _ := slices.BinarySearchFunc(a.kills, r.actual, time.Time.Compare) // the last one before the run is kill-1
		if kill > 0 && !r.due.After(a.kills[kill-1].Add(afterKill)) {
			l.after = append(l.after, late)
			continue
		}
		l.away = append(l.away, late)
		if a.machineOnTime(r) {
			l.onTime = append(l.onTime, late)
		}
	}
	return l
}

// machineOnTime reports whether the probes were on time while a run was due: from the
// last one before its instant to the first one after it was fired.
func (a *runAccount) machineOnTime(r lateRun) bool {
	byDue := func(p lateRun, at time.Time) int { return p.due.Compare(at) }
	first, _ := slices.BinarySearchFunc(a.probes, r.due, byDue)
	last, _ := slices.BinarySearchFunc(a.probes, r.actual, byDue)
	return !slices.ContainsFunc(a.probes[max(first-1, 0):min(last+1, len(a.probes))], func(p lateRun) bool {
		return p.actual.Sub(p.due) > onTime
	})
}

// spread describes durations by their quantiles.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	at := func(q float64) time.Duration {
		return all[min(int(q*float64(len(all))), len(all)-1)].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("p50 %v, p99 %v, max %v of %d", at(0.5), at(0.99), at(1), len(all))
}
