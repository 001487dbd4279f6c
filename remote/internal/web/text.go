package web

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// parseDuration reads a duration as Go or ISO 8601 writes it: 72h, 1h30m, PT72H, P3D. A
// day has 24 hours; months and years have no fixed length.
func parseDuration(text string) (time.Duration, error) {
	rest, iso := strings.CutPrefix(text, "P")
	if !iso {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, errDuration
		}
		return d, nil
	}
	days, times, timed := strings.Cut(rest, "T")
	total, err := sum(days, []isoUnit{{'W', 7 * 24 * time.Hour}, {'D', 24 * time.Hour}})
	if err != nil || (timed && times == "") || rest == "" {
		return 0, errDuration
	}
	clock, err := sum(times, []isoUnit{{'H', time.Hour}, {'M', time.Minute}, {'S', time.Second}})
	if err != nil || total+clock < total {
		return 0, errDuration
	}
	return total + clock, nil
}

var errDuration = errors.New(`want a duration such as "72h", "1m30s" or "PT72H"`)

type isoUnit struct {
	letter byte
	is     time.Duration
}

// sum adds the numbers of an ISO 8601 duration. Units come in order, each once.
func sum(text string, units []isoUnit) (total time.Duration, err error) {
	for _, unit := range units {
		number, rest, found := strings.Cut(text, string(unit.letter))
		if !found {
			continue
		}
		text = rest
		if number == "" || strings.Trim(number, "0123456789.") != "" {
			return 0, errDuration
		}
		n, err := strconv.ParseFloat(number, 64)
		part := n * float64(unit.is)
		if err != nil || part > float64(1<<62) || total+time.Duration(part) < 0 {
			return 0, errDuration
		}
		total += time.Duration(part)
	}
	if text != "" {
		return 0, errDuration
	}
	return total, nil
}
