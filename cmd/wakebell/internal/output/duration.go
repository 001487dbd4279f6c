package output

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

var longUnits = regexp.MustCompile(`([0-9]*\.?[0-9]+)([dw])`)

// ParseDuration is time.ParseDuration with the units d, 24 hours, and w, 7 days:
// "1w2d", "1.5d".
func ParseDuration(text string) (time.Duration, error) {
	invalid := fmt.Errorf("%q is not a duration such as 90s, 36h, 2d or 1w", text)
	var fault error
	short := longUnits.ReplaceAllStringFunc(text, func(part string) string {
		n, err := strconv.ParseFloat(part[:len(part)-1], 64)
		fault = errors.Join(fault, err)
		unit := humanize.Day
		if part[len(part)-1] == 'w' {
			unit = humanize.Week
		}
		if n *= float64(unit); n > math.MaxInt64 {
			fault = errors.Join(fault, invalid)
		}
		return strconv.FormatFloat(n, 'f', 0, 64) + "ns"
	})
	d, err := time.ParseDuration(short)
	if err != nil || fault != nil {
		return 0, invalid
	}
	return d, nil
}

// Age formats how old something is in at most two units that ParseDuration takes:
// "1.5s", "3m20s", "2d5h".
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Round(time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < humanize.Day:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	d = d.Round(time.Hour)
	text := fmt.Sprintf("%dd", d/humanize.Day)
	if hours := d % humanize.Day / time.Hour; hours > 0 {
		text += fmt.Sprintf("%dh", hours)
	}
	return text
}
