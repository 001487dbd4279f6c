package redisops

import (
	"fmt"
	"math"
	"strconv"
	"strings"
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
	return strconv.FormatFloat(max(d, 0).Seconds(), 'f', -1, 64)
}

// readScore reads a score as Redis writes it: exactly what number in
// lua/prelude.lua reads. ParseFloat alone reads more, such as hexadecimal digits.
func readScore(text string) (float64, error) {
	switch text {
	case "inf", "+inf":
		return math.Inf(1), nil
	case "-inf":
		return math.Inf(-1), nil
	}
	if !plainNumber(text) {
		return 0, fmt.Errorf("%w: score %q", errReply, text)
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(x, 0) {
		return 0, fmt.Errorf("%w: score %q", errReply, text)
	}
	return x, nil
}

// plainNumber reports whether text is a decimal number without leading zeros,
// with an exponent of at most four characters.
func plainNumber(text string) bool {
	mantissa, power, exponent := strings.Cut(text, "e")
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	if whole == "" || !digits(whole) || !digits(fraction) || (len(whole) > 1 && whole[0] == '0') {
		return false
	}
	if !exponent {
		return true
	}
	unsigned := strings.TrimPrefix(power, "+")
	if unsigned == power {
		unsigned = strings.TrimPrefix(power, "-")
	}
	return unsigned != "" && len(power) <= 4 && digits(unsigned)
}

func digits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

// readCount reads a count of a lease record: exactly what counted in
// lua/prelude.lua accepts.
func readCount(text string) (int, bool) {
	if text == "" || len(text) > 9 || !digits(text) || (len(text) > 1 && text[0] == '0') {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
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
