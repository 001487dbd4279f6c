package wakebelltype

import (
	"slices"
	"time"
)

// latenessBounds are the upper bounds of the buckets of Latenesses but for the last, which
// has none.
var latenessBounds = [...]time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 24 * time.Hour,
}

// Latenesses counts by lateness: those up to 1, 2, 5, 10, 20, 50, 100, 200 and 500 ms, up to
// 1, 2, 5, 10, 20 and 30 s, up to 1, 2, 5, 10, 20 and 30 min, up to 1, 2, 6 and 24 h, and
// those above.
type Latenesses [len(latenessBounds) + 1]int64

// Count counts n of a lateness.
func (l *Latenesses) Count(late time.Duration, n int64) {
	at, _ := slices.BinarySearch(latenessBounds[:], late)
	l[at] += n
}

// Plus returns the sum of two.
func (l Latenesses) Plus(o Latenesses) Latenesses {
	for i := range l {
		l[i] += o[i]
	}
	return l
}

// Minus returns the difference of two.
func (l Latenesses) Minus(o Latenesses) Latenesses {
	for i := range l {
		l[i] -= o[i]
	}
	return l
}

// Quantile returns the lateness that a part q of those counted, 0 to 1, does not exceed. It is
// interpolated within a bucket; what is above 24 h counts as 24 h. False: nothing is
// counted.
func (l Latenesses) Quantile(q float64) (late time.Duration, found bool) {
	total := 0.0
	for _, n := range l {
		total += float64(n)
	}
	if total <= 0 {
		return 0, false
	}
	rank, below := q*total, 0.0
	for i, upper := range latenessBounds {
		if n := float64(l[i]); n > 0 && below+n >= rank {
			lower := time.Duration(0)
			if i > 0 {
				lower = latenessBounds[i-1]
			}
			return lower + time.Duration(max(0, rank-below)/n*float64(upper-lower)), true
		}
		below += float64(l[i])
	}
	return latenessBounds[len(latenessBounds)-1], true
}
