// Package show formats values for people: foreign text without effects, counts,
// instants, durations and payloads.
package show

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Text makes foreign text visible: control characters, invisible characters, those
// that change the direction of writing, and invalid UTF-8 are written as in a Go
// string. The template escapes HTML.
func Text(s string) string { return visible(s, "") }

// Lines does the same and keeps line feeds and tabs.
func Lines(s string) string { return visible(s, "\n\t") }

func visible(s, keep string) string {
	clean := func(r rune) bool { return unicode.IsPrint(r) || strings.ContainsRune(keep, r) }
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !clean(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case clean(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
		i += size
	}
	return b.String()
}

// Short is Text cut to n characters.
func Short(n int, s string) string {
	if len(s) > 8*n { // so that a text of 1 MiB costs little
		s = s[:8*n]
	}
	runes := []rune(Text(s))
	if len(runes) <= n {
		return string(runes)
	}
	return string(runes[:n-1]) + "…"
}

// Count writes a number with separators: 1,234,567.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Things writes a number with a noun: "1 timer", "2 timers".
func Things(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "y") && !strings.HasSuffix(one, "ey") {
		one = strings.TrimSuffix(one, "y") + "ie"
	}
	return Count(n) + " " + one + "s"
}

// Span writes a duration with its two largest units: "3 d 4 h", "12 s", "35 ms".
func Span(d time.Duration) string {
	d = d.Abs()
	switch {
	case d == 0:
		return "0 s"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	units := []struct {
		name string
		size time.Duration
	}{{"y", 365 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}}
	for i, u := range units {
		if d < u.size {
			continue
		}
		text := fmt.Sprintf("%d %s", d/u.size, u.name)
		if i+1 < len(units) {
			if rest := d % u.size / units[i+1].size; rest > 0 {
				text += fmt.Sprintf(" %d %s", rest, units[i+1].name)
			}
		}
		return text
	}
	return "0 s"
}

// Since writes an instant relative to now: "in 3 h", "4 min ago", "now".
func Since(t, now time.Time) string {
	d := t.Sub(now)
	switch {
	case d.Abs() < time.Second:
		return "now"
	case d > 0:
		return "in " + Span(d)
	default:
		return Span(d) + " ago"
	}
}

// Stamp writes an instant for a person: "2031-01-02 15:04:05.123 UTC".
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 MST") }

// Size writes a number of bytes: "312 B", "4.2 KiB".
func Size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
}
