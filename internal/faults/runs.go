package faults

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// afterKill is for how long after a kill a run counts as due after it.
const afterKill = 2 * time.Second

// runAccount is the account of the runs of recurring schedules: what was to be
// fired, what beats have printed, and what became of it in Redis.
type runAccount struct {
	mu        sync.Mutex
	schedules map[string]*scheduleRuns
	kills     []time.Time // in order
	fired     []lateRun
	probes    []lateRun
	early     int
}

// scheduleRuns are the runs of a schedule.
type scheduleRuns struct {
	start   time.Time
	every   time.Duration
	printed map[int64]int  // times that a run was printed, by µs of its instant
	last    time.Time      // instant that was printed
	timers  map[int64]bool // by µs of the instant
	counted int64          // runs by the meta
}

// lateRun is something that was due and came.
type lateRun struct{ due, came time.Time }

// printedRun is a line of `wakebell beat`.
type printedRun struct {
	Name    string
	Due     time.Time
	FiredAt time.Time `json:"fired_at"`
}

func newRunAccount() *runAccount { return &runAccount{schedules: map[string]*scheduleRuns{}} }

// expect notes a schedule that was put.
func (a *runAccount) expect(name string, start time.Time, every time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.schedules[name] = &scheduleRuns{start: start, every: every, printed: map[int64]int{}, timers: map[int64]bool{}}
}

// printed notes a run that a beat says it has fired.
func (a *runAccount) printed(p printedRun) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.schedules[p.Name]
	s.printed[p.Due.UnixMicro()]++
	if p.Due.After(s.last) {
		s.last = p.Due
	}
	if p.FiredAt.Before(p.Due) {
		a.early++
	}
	a.fired = append(a.fired, lateRun{p.Due, p.FiredAt})
}

func (a *runAccount) probed(due, came time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probes = append(a.probes, lateRun{due, came})
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

// timer notes a timer of a run, by its id.
func (a *runAccount) timer(id string) error {
	name, at, _ := strings.Cut(id, "@")
	instant, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return fmt.Errorf("id of a run's timer: %w", err)
	}
	a.schedules[name].timers[instant.UnixMicro()] = true
	return nil
}

func (a *runAccount) counted(name string, runs int64) { a.schedules[name].counted = runs }

// judge compares the runs with the instants of the schedules.
func (a *runAccount) judge() *Judgement {
	a.mu.Lock()
	defer a.mu.Unlock()
	j := &Judgement{Early: a.early}
	for name, s := range a.schedules {
		j.Timers += len(s.timers)
		missing, strange := s.compare()
		twice := s.twice()
		j.Scheduled += len(s.timers) + missing - strange
		j.Deliveries += int(s.counted)
		j.Lost += missing
		j.Illegal += strange
		j.Repeated += twice
		j.Uncaused += twice
		if missing+strange+twice > 0 {
			j.Violations = append(j.Violations, fmt.Sprintf("%s, every %v: %d instants have no timer, %d timers no instant, %d runs came twice",
				name, s.every, missing, strange, twice))
		}
	}
	return j
}

// compare counts the instants without a timer, up to the last one with a timer,
// and the timers that are at no instant of the schedule.
func (s *scheduleRuns) compare() (missing, strange int) {
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

// twice counts the runs that were fired again. The id of a timer hides them from
// the timeline; the number of runs and what the beats print do not.
func (s *scheduleRuns) twice() int {
	printed := 0
	for _, times := range s.printed {
		printed += times - 1
	}
	return max(printed, int(s.counted)-len(s.timers), 0)
}

// notes are the figures of lateness, beside those of the probe.
func (a *runAccount) notes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	timers := 0
	for _, s := range a.schedules {
		timers += len(s.timers)
	}
	away, after := a.split(a.fired)
	probeAway, probeAfter := a.split(a.probes)
	return []string{
		fmt.Sprintf("%d schedules, %d runs, %d of them not printed by who was killed", len(a.schedules), timers, timers-len(a.fired)),
		fmt.Sprintf("late by, away from kills: %s; the probe: %s", spread(away), spread(probeAway)),
		fmt.Sprintf("late by, %v after a kill: %s; the probe: %s", afterKill, spread(after), spread(probeAfter)),
	}
}

// split takes apart by how much came late what a kill may have held up, and the
// rest; what was due before the first probe is neither.
func (a *runAccount) split(runs []lateRun) (away, after []time.Duration) {
	for _, r := range runs {
		late := r.came.Sub(r.due)
		i, _ := slices.BinarySearchFunc(a.kills, r.came, time.Time.Compare) // kills[i-1] is the last one before it came
		switch {
		case len(a.probes) == 0 || r.due.Before(a.probes[0].due):
		case i > 0 && !r.due.After(a.kills[i-1].Add(afterKill)):
			after = append(after, late)
		default:
			away = append(away, late)
		}
	}
	return away, after
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
	return fmt.Sprintf("p50 %v, p99 %v, most %v of %d", at(0.5), at(0.99), at(1), len(all))
}
