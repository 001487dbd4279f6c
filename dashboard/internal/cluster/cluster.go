// Package cluster has the counts of all topics, which the pages of a dashboard share.
package cluster

import (
	"cmp"
	"context"
	"slices"

	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/internal/ranked"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// MaxTopics bounds the topics of a value.
	MaxTopics = 10_000
	// Worst bounds the lists.
	Worst = 10
	// MostDead bounds the list Dead.
	MostDead = 50

	atOnce = 500 // topics of a call
)

// Counts are the overviews of all topics and their sums. Pages share a value: they must not
// change it.
type Counts struct {
	Topics int // that exist
	Read   int // that are in the sums
	Stats  wakebelltype.Stats

	Rows     []wakebelltype.Overview // of the topics that were read, by name
	Problems int                     // topics with problems

	Behind []wakebelltype.Overview // with due timers, the latest first
	Paused []wakebelltype.Overview
	Dead   []wakebelltype.Overview // with dead letters, the most first
	Faults []wakebelltype.Overview // that cannot be read, or have lost data
	Alone  []wakebelltype.Overview // whose due timers wait for a node, the latest first
	NoNode int                     // number of these topics
	Lost   error                   // why topics are missing; nil: none are
}

// Read reads topics, which are sorted by name.
func Read(ctx context.Context, names []string, overview func(context.Context, ...string) ([]wakebelltype.Overview, error)) (*Counts, error) {
	c := &Counts{Topics: len(names), Read: min(len(names), MaxTopics)}
	for part := range slices.Chunk(names[:c.Read], atOnce) {
		all, err := overview(ctx, part...)
		if err != nil {
			return nil, err
		}
		for i, o := range all {
			o.Topic = part[i]
			c.add(o)
		}
	}
	c.trim()
	return c, nil
}

func (c *Counts) add(o wakebelltype.Overview) {
	c.Rows = append(c.Rows, o)
	s := o.Stats
	c.Stats.Total += s.Total
	c.Stats.Pending += s.Pending
	c.Stats.Due += s.Due
	c.Stats.Leased += s.Leased
	c.Stats.Retrying += s.Retrying
	c.Stats.Parked += s.Parked
	c.Stats.Dead += s.Dead
	c.Stats.Estimated = c.Stats.Estimated || s.Estimated
	if s.Lag > c.Stats.Lag {
		c.Stats.Lag, c.Stats.OldestDue = s.Lag, s.OldestDue
	}
	if ranked.Problem(o) != "" {
		c.Problems++
	}
	for list, in := range map[*[]wakebelltype.Overview]bool{
		&c.Behind: s.Due > 0, &c.Alone: attended.Waits(o) != "", &c.Paused: s.Paused || o.Control.Paused,
		&c.Dead: s.Dead > 0, &c.Faults: o.Err != nil || o.Damage != "",
	} {
		if in {
			*list = append(*list, o)
		}
	}
}

// trim keeps the worst topics of each list.
func (c *Counts) trim() {
	late := func(a, b wakebelltype.Overview) int { return cmp.Compare(b.Stats.Lag, a.Stats.Lag) }
	slices.SortStableFunc(c.Behind, late)
	slices.SortStableFunc(c.Alone, late)
	ranked.Sort(c.Dead, "dead")
	c.NoNode = len(c.Alone)
	c.Alone = c.Alone[:min(Worst, len(c.Alone))]
	c.Behind = c.Behind[:min(Worst, len(c.Behind))]
	c.Dead = c.Dead[:min(MostDead, len(c.Dead))]
	c.Paused = c.Paused[:min(Worst, len(c.Paused))]
	c.Faults = c.Faults[:min(Worst, len(c.Faults))]
}

// Busiest returns the names of up to n topics, those that handled most lately first, then
// those with the most timers.
func (c *Counts) Busiest(n int, of func(wakebelltype.Overview) bool) (names []string) {
	rows := slices.SortedStableFunc(slices.Values(c.Rows), func(a, b wakebelltype.Overview) int {
		return cmp.Or(cmp.Compare(ranked.Rate(b), ranked.Rate(a)), cmp.Compare(b.Stats.Total, a.Stats.Total))
	})
	for _, o := range rows {
		if len(names) < n && of(o) {
			names = append(names, o.Topic)
		}
	}
	return names
}

// Select returns the names of the topics that match, in an order of package ranked, and only of
// those with problems if asked.
func (c *Counts) Select(matches func(string) bool, order string, problems bool) (names []string) {
	var rows []wakebelltype.Overview
	for _, o := range c.Rows {
		if matches(o.Topic) && (!problems || ranked.Problem(o) != "") {
			rows = append(rows, o)
		}
	}
	ranked.Sort(rows, order)
	for _, o := range rows {
		names = append(names, o.Topic)
	}
	return names
}

// Of returns what was read of topics; of one that was not, only the name.
func (c *Counts) Of(names []string) (rows []wakebelltype.Overview) {
	for _, name := range names {
		o := wakebelltype.Overview{Topic: name}
		at, found := slices.BinarySearchFunc(c.Rows, name, func(o wakebelltype.Overview, name string) int { return cmp.Compare(o.Topic, name) })
		if found {
			o = c.Rows[at]
		}
		rows = append(rows, o)
	}
	return rows
}
