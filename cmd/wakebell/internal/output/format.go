// Package output formats what commands print: values, contents of timers, tables
// and lines of JSON, safe for a terminal.
package output

import (
	"strconv"
	"strings"
	"time"
)

// Rounded rounds to 3 decimals.
func Rounded(x float64) float64 {
	v, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', 3, 64), 64) // formatted above, so it parses
	return v
}

// Stamp formats an instant for output; empty for none.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Millis returns a duration in milliseconds.
func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// YesNo formats a boolean for the table output.
func YesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// Fault formats an error as one line; empty for none.
func Fault(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// Number formats a count for the table output.
func Number(n int64) string { return strconv.FormatInt(n, 10) }

// Took formats the time since an instant.
func Took(began time.Time) time.Duration { return time.Since(began).Round(100 * time.Millisecond) }
