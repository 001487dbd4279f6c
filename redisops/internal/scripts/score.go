package scripts

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// FirstInstant and LastInstant bound the instants that are read from scores:
// time.Time can print them and JSON can carry them.
var (
	FirstInstant = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	LastInstant  = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// ScoreText formats an instant as a score, rounded up to the µs so that it is never
// early.
func ScoreText(t time.Time) string {
	us := t.UnixMicro()
	if t.Nanosecond()%1000 != 0 {
		us++
	}
	return strconv.FormatFloat(float64(us)/1e6, 'f', 6, 64)
}

// DelayText formats a duration in seconds; a negative one is 0.
func DelayText(d time.Duration) string {
	return strconv.FormatFloat(max(d, 0).Seconds(), 'f', -1, 64)
}

// ReadScore reads a score as Redis writes it. It accepts exactly what number in
// lua/prelude.lua accepts; ParseFloat alone accepts more, such as hexadecimal
// digits.
func ReadScore(text string) (float64, error) {
	switch text {
	case "inf", "+inf":
		return math.Inf(1), nil
	case "-inf":
		return math.Inf(-1), nil
	}
	if !plainNumber(text) {
		return 0, fmt.Errorf("%w: score %q", ErrReply, text)
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(x, 0) {
		return 0, fmt.Errorf("%w: score %q", ErrReply, text)
	}
	return x, nil
}

const digits = "0123456789"

// plainNumber reports whether text is a decimal number without leading zeros,
// with an exponent of at most four characters.
func plainNumber(text string) bool {
	mantissa, power, exponent := strings.Cut(text, "e")
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	if whole == "" || strings.Trim(whole, digits) != "" || strings.Trim(fraction, digits) != "" || (len(whole) > 1 && whole[0] == '0') {
		return false
	}
	if !exponent {
		return true
	}
	unsigned := strings.TrimPrefix(power, "+")
	if unsigned == power {
		unsigned = strings.TrimPrefix(power, "-")
	}
	return unsigned != "" && len(power) <= 4 && strings.Trim(unsigned, digits) == ""
}

// ReadCount reads a count of a lease record. It accepts exactly what counted in
// lua/prelude.lua accepts.
func ReadCount(text string) (int, bool) {
	if text == "" || len(text) > 9 || strings.Trim(text, digits) != "" || (len(text) > 1 && text[0] == '0') {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// Instant converts a score to an instant, to the nearest µs, between FirstInstant
// and LastInstant.
func Instant(score float64) time.Time {
	switch us := math.Round(score * 1e6); {
	case us >= float64(LastInstant.UnixMicro()):
		return LastInstant
	case us <= float64(FirstInstant.UnixMicro()):
		return FirstInstant
	default:
		return time.UnixMicro(int64(us)).UTC()
	}
}

// Between returns the time from one score to another, to the nearest µs.
func Between(from, to float64) time.Duration {
	us := math.Round((to - from) * 1e6)
	if math.IsNaN(us) { // both are infinite
		return 0
	}
	limit := float64(math.MaxInt64 / int64(time.Microsecond))
	return time.Duration(min(max(us, -limit), limit)) * time.Microsecond
}

// DelayMicros formats a delay in µs, rounded up; a negative one is 0.
func DelayMicros(d time.Duration) string {
	us := max(d, 0) / time.Microsecond
	if d%time.Microsecond > 0 {
		us++
	}
	return strconv.FormatInt(int64(us), 10)
}

// ReadInstant reads a score as an instant; it returns the zero time if text is not
// a score.
func ReadInstant(text string) time.Time {
	score, err := ReadScore(text)
	if err != nil {
		return time.Time{}
	}
	return Instant(score)
}
