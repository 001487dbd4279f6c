package redisops

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// lastInstant and firstInstant bound what a score is read as: instants that
// time.Time can print and JSON can carry.
var (
	firstInstant = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	lastInstant  = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// scoreText writes an instant as a score, rounded up to the µs so that it is
// never early.
func scoreText(t time.Time) string {
	us := t.UnixMicro()
	if t.Nanosecond()%1000 != 0 {
		us++
	}
	return strconv.FormatFloat(float64(us)/1e6, 'f', 6, 64)
}

// delayText writes a duration in seconds; negative ones are none.
func delayText(d time.Duration) string {
	return strconv.FormatFloat(max(d, 0).Seconds(), 'g', -1, 64)
}

// readScore reads a score as Redis or a peer wrote it.
func readScore(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if (err != nil && !math.IsInf(x, 0)) || math.IsNaN(x) {
		return 0, fmt.Errorf("%w: score %q", errReply, text)
	}
	return x, nil
}

// instant reads a score as an instant to the nearest µs, within the bounds.
func instant(score float64) time.Time {
	switch us := math.Round(score * 1e6); {
	case us >= float64(lastInstant.UnixMicro()):
		return lastInstant
	case us <= float64(firstInstant.UnixMicro()):
		return firstInstant
	default:
		return time.UnixMicro(int64(us)).UTC()
	}
}

// between is the time from one score to another, to the nearest µs.
func between(from, to float64) time.Duration {
	us := math.Round((to - from) * 1e6)
	if math.IsNaN(us) { // both are infinite
		return 0
	}
	limit := float64(math.MaxInt64 / int64(time.Microsecond))
	return time.Duration(min(max(us, -limit), limit)) * time.Microsecond
}

// delayMicros writes a delay in µs, rounded up; negative ones are none.
func delayMicros(d time.Duration) string {
	us := max(d, 0) / time.Microsecond
	if d%time.Microsecond > 0 {
		us++
	}
	return strconv.FormatInt(int64(us), 10)
}
