package faults

import "time"

// Judgement is the result of a round.
type Judgement struct {
	Timers     int // ids
	Scheduled  int // timers whose schedule was acknowledged
	Deliveries int

	Lost        int // acknowledged, not superseded, and no handler was done with it
	LostByRedis int // as Lost, but Redis had lost the write
	Early       int // delivered before its instant

	Confirmed     map[int]int // acknowledged schedules, by how many replicas had to confirm them
	LostConfirmed map[int]int // of these, the part of LostByRedis
	Twice         int         // handlers that ran beside the next one of their timer, with two masters

	Repeated    int // deliveries after the first of a timer
	Causes      map[Cause]int
	Uncaused    int // repeated without a cause
	Stale       int // accepted settlements of a handler that was no longer the holder
	Overlapping int // handlers that ran longer than allowed with the next one of their timer
	Undelivered int // claims that reached no handler, without a cause
	Unordered   int // timers that overtook another of their key, or held it with too many
	Exceeded    int // limits of a topic that did not hold
	Illegal     int // answers and deliveries that no order of the calls explains

	Recovery   []time.Duration // from a fault to the delivery that it delayed
	RecoveryBy map[Cause][]time.Duration

	// Violations are the timers that broke a promise, each with its history.
	Violations []string
}

// Broken counts the broken promises.
func (j *Judgement) Broken() int {
	return j.Lost + j.Early + j.Uncaused + j.Stale + j.Overlapping + j.Undelivered + j.Unordered + j.Exceeded + j.Illegal
}

// add adds the figures of another round.
func (j *Judgement) add(o *Judgement) {
	for _, pair := range [][2]*int{
		{&j.Timers, &o.Timers},
		{&j.Scheduled, &o.Scheduled},
		{&j.Deliveries, &o.Deliveries},
		{&j.Lost, &o.Lost},
		{&j.LostByRedis, &o.LostByRedis},
		{&j.Early, &o.Early},
		{&j.Repeated, &o.Repeated},
		{&j.Uncaused, &o.Uncaused},
		{&j.Stale, &o.Stale},
		{&j.Overlapping, &o.Overlapping},
		{&j.Undelivered, &o.Undelivered},
		{&j.Unordered, &o.Unordered},
		{&j.Exceeded, &o.Exceeded},
		{&j.Illegal, &o.Illegal},
	} {
		*pair[0] += *pair[1]
	}
	if j.Causes == nil {
		j.Causes = map[Cause]int{}
	}
	for cause, n := range o.Causes {
		j.Causes[cause] += n
	}
	j.Recovery = append(j.Recovery, o.Recovery...)
	j.Twice += o.Twice
	j.Confirmed, j.LostConfirmed = sum(j.Confirmed, o.Confirmed), sum(j.LostConfirmed, o.LostConfirmed)
	if j.RecoveryBy == nil {
		j.RecoveryBy = map[Cause][]time.Duration{}
	}
	for cause, took := range o.RecoveryBy {
		j.RecoveryBy[cause] = append(j.RecoveryBy[cause], took...)
	}
	j.Violations = append(j.Violations, o.Violations...)
}

// sum adds the counts of two maps.
func sum(a, b map[int]int) map[int]int {
	if a == nil {
		a = map[int]int{}
	}
	for k, n := range b {
		a[k] += n
	}
	return a
}
