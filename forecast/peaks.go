package forecast

import (
	"cmp"
	"slices"
)

// peak finds the minute in which most is due on some topics together. It counts the minutes
// of the bars with the most first, and needs no bar that has less than the best minute.
func (l *load) peak(topics []*topicLoad) (Peak, error) {
	type bar struct {
		number int
		count  int64
	}
	bars := make([]bar, l.bars)
	for i := range bars {
		bars[i].number = i
		for _, t := range topics {
			bars[i].count += t.timers[i] + l.runsIn(t, i)
		}
	}
	slices.SortStableFunc(bars, func(a, b bar) int { return cmp.Compare(b.count, a.count) })
	best := Peak{Exact: true}
	for _, b := range bars {
		if b.count <= best.Count {
			break
		}
		sum, all := make([]int64, l.perBar), true
		for _, t := range topics {
			due, counted, err := l.inBar(t, b.number, true)
			if err != nil {
				return Peak{}, err
			}
			all = all && counted
			for i, n := range due {
				sum[i] += n
			}
		}
		best.Exact = best.Exact && all
		for i, n := range sum {
			if n > best.Count {
				best.At, best.Count = l.minute(b.number*l.perBar+i), n
			}
		}
	}
	return best, nil
}
