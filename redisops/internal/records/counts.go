package records

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	minutesKept = 24 * 60
	daysKept    = 90
	day         = 24 * time.Hour
)

// WriteCounts adds what an incarnation of a node has done. Call is the number of the
// call; a repeated call with the same number is counted once. Counted is the key that
// stores the number, one for each incarnation.
func (s Store) WriteCounts(ctx context.Context, counted string, call uint64, c wakebelltype.ThroughputCounts) error {
	_, err := s.RunText(ctx, countsScript, []string{s.Counts, counted}, strconv.FormatUint(call, 10),
		c.Handled, c.Failed, c.Dead, c.Started, c.Lateness.Microseconds(), c.MaxLateness.Microseconds(), latenessText(c.Latenesses))
	if err != nil {
		return fmt.Errorf("counts of %q: %w", s.Name, err)
	}
	return nil
}

// Throughput returns the counts since a duration ago: by minute for up to 24 hours, by
// day for up to 90 days. The last step is the present one.
func (s Store) Throughput(ctx context.Context, since time.Duration) (wakebelltype.Throughput, error) {
	if since < time.Minute || since > daysKept*day {
		return wakebelltype.Throughput{}, fmt.Errorf("%w: since: %v, want 1 min to 90 days", wakebelltype.ErrInvalid, since)
	}
	var fields map[string]string
	var now time.Time
	err := s.Again(ctx, func() error {
		pipe := s.RDB.Pipeline()
		clock, all := pipe.Time(ctx), pipe.HGetAll(ctx, s.Counts)
		_, _ = pipe.Exec(ctx) // each reply has its own error
		var err error
		if now, err = clock.Result(); err == nil {
			fields, err = all.Result()
		}
		return scripts.Wrap(ctx, []string{s.Counts}, err)
	})
	if err != nil {
		return wakebelltype.Throughput{}, fmt.Errorf("throughput of %q: %w", s.Name, err)
	}
	return throughputOf(fields, now, since), nil
}

// throughputOf reads the fields that tally.lua writes; it ignores others.
func throughputOf(fields map[string]string, now time.Time, since time.Duration) wakebelltype.Throughput {
	t := wakebelltype.Throughput{Step: time.Minute}
	if since > day {
		t.Step = day
	}
	last := now.Unix() / int64(t.Step.Seconds())
	first := last - int64((since+t.Step-1)/t.Step) + 1
	t.Points = make([]wakebelltype.ThroughputCounts, last-first+1)
	for i := range t.Points {
		t.Points[i].At = time.Unix((first+int64(i))*int64(t.Step.Seconds()), 0).UTC()
	}
	for field, text := range fields {
		step, kind, ok := stepOf(field, t.Step)
		if ok && kind == 'q' && step >= first && step <= last {
			point := &t.Points[step-first]
			point.Latenesses = point.Latenesses.Plus(latenessesOf(text))
			continue
		}
		count, err := strconv.ParseInt(text, 10, 64)
		if !ok || err != nil || step < first || step > last {
			continue
		}
		point := &t.Points[step-first]
		switch kind {
		case 's':
			point.Scheduled += count
		case 'h':
			point.Handled += count
		case 'f':
			point.Failed += count
		case 'd':
			point.Dead += count
		case 'n':
			point.Started += count
		case 'l':
			point.Lateness += time.Duration(count) * time.Microsecond
		case 'm':
			point.MaxLateness = max(point.MaxLateness, time.Duration(count)*time.Microsecond)
		}
	}
	return t
}

// Recent is what is asked of the counts of the last minutes, by Redis's clock.
type Recent struct {
	Fields  []string // of the hash
	now     time.Time
	minutes int
}

// RecentCounts asks for some kinds of counts, as in docs/keys.md, of the last minutes, 1 to 60.
// A page of an overview or a check of many topics needs no more.
func RecentCounts(now time.Time, minutes int, kinds string) Recent {
	r := Recent{now: now, minutes: minutes}
	for i := range minutes {
		minute := strconv.FormatInt(now.Unix()/60-int64(i), 10)
		for _, kind := range kinds {
			r.Fields = append(r.Fields, minute+string(kind))
		}
	}
	return r
}

// Of reads the values of the fields.
func (r Recent) Of(values []any) wakebelltype.Throughput {
	read := map[string]string{}
	for i, v := range values[:min(len(values), len(r.Fields))] {
		if text, ok := v.(string); ok {
			read[r.Fields[i]] = text
		}
	}
	return throughputOf(read, r.now, time.Duration(r.minutes)*time.Minute)
}

// latenessText writes what is not 0 as a capital for the bucket, from A on, and the number.
func latenessText(l wakebelltype.Latenesses) string {
	var text []byte
	for i, n := range l {
		if n > 0 {
			text = strconv.AppendInt(append(text, 'A'+byte(i)), n, 10)
		}
	}
	return string(text)
}

// latenessesOf is the inverse of latenessText. It ignores what it cannot read.
func latenessesOf(text string) (l wakebelltype.Latenesses) {
	for len(text) > 0 {
		bucket, digits := int(text[0])-'A', text[1:]
		end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 {
			end = len(digits)
		}
		if n, err := strconv.ParseInt(digits[:end], 10, 64); err == nil && bucket >= 0 && bucket < len(l) {
			l[bucket] += n
		}
		text = digits[end:]
	}
	return l
}

// stepOf returns the step of a field, in units since 1970, and its kind.
func stepOf(field string, step time.Duration) (at int64, kind byte, ok bool) {
	if len(field) < 2 {
		return 0, 0, false
	}
	digits, kind := field[:len(field)-1], field[len(field)-1]
	daily := digits[0] == 'd'
	if daily {
		digits = digits[1:]
	}
	at, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil, daily && step != day:
		return 0, 0, false
	case !daily && step == day:
		at /= minutesKept
	}
	return at, kind, true
}
