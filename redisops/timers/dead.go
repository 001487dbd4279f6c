package timers

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// DeadLetter is a timer that was rejected, used up its attempts or could not be
// decoded.
type DeadLetter struct {
	Entry      string // stream id of the dead letter, in the order in which timers were dead-lettered
	ID         string // of the timer
	Key        string // of the timer; empty: none
	Payload    []byte
	Claims     int // deliveries
	Failures   int // nacks
	Reason     string
	Activation time.Time // instant for which the timer was scheduled
	At         time.Time // when it was dead-lettered
}

var streamID = regexp.MustCompile(`^\d+-\d+$`)

// walkArgs are the arguments of walk in lua/letters.lua; from and upto bound the
// entries.
func walkArgs(f wakebelltype.DeadFilter, from, upto string, limit int) ([]any, error) {
	switch {
	case f.OlderThan < 0, f.NewerThan < 0:
		return nil, fmt.Errorf("%w: age: %v to %v, want at least 0", wakebelltype.ErrInvalid, f.OlderThan, f.NewerThan)
	case f.Entry == "":
	case !streamID.MatchString(f.Entry):
		return nil, fmt.Errorf("%w: entry: %q is not the Entry of a dead letter", wakebelltype.ErrInvalid, f.Entry)
	default:
		from, upto = f.Entry, f.Entry
	}
	older, newer := "", ""
	if f.OlderThan > 0 {
		older = scripts.DelayMicros(f.OlderThan)
	}
	if f.NewerThan > 0 {
		newer = scripts.DelayMicros(f.NewerThan)
	}
	return []any{from, upto, limit, layout.DeadPageBytes, f.Reason, f.ReasonPrefix, older, newer}, nil
}

// DeadLetters reads a page of dead letters, the oldest first. After is empty for
// the first page, and the next value of the previous page otherwise; next is empty
// after the last page. A page has at most limit dead letters (1 to 1000; 0 means
// 100) and about 1 MiB. A filter examines no more than that, so a page may be empty
// and have a next page.
func (s *Timers) DeadLetters(ctx context.Context, topic string, f wakebelltype.DeadFilter, after string, limit int) (letters []DeadLetter, next string, err error) {
	if err := layout.CheckTopic(topic); err != nil {
		return nil, "", err
	}
	if limit < 0 || limit > layout.MaxPage {
		return nil, "", fmt.Errorf("%w: limit: %d, want 1 to %d", wakebelltype.ErrInvalid, limit, layout.MaxPage)
	}
	if limit == 0 {
		limit = layout.DefaultPage
	}
	from := "-"
	if after != "" {
		if !streamID.MatchString(after) || f.Entry != "" {
			return nil, "", fmt.Errorf("%w: after: %q is not a valid page cursor", wakebelltype.ErrInvalid, after)
		}
		from = "(" + after
	}
	args, err := walkArgs(f, from, "+", limit)
	if err != nil {
		return nil, "", err
	}
	list, err := s.RunList(ctx, 1, deadScript, []string{s.keys.Of(topic).Dead}, args...)
	if err != nil {
		return nil, "", fmt.Errorf("dead letters of %q: %w", topic, err)
	}
	letters, next, err = readDeadLetters(list)
	return letters, strings.TrimPrefix(next, "("), err
}

// readDeadLetters reads the reply of the scripts: the position of the next page,
// then entries and their fields.
func readDeadLetters(list []any) (letters []DeadLetter, next string, err error) {
	for v := list[1:]; len(v) >= 2; v = v[2:] {
		entry, _ := v[0].(string)
		fields, _ := v[1].([]any)
		values, err := scripts.Texts(fields)
		if err != nil {
			return nil, "", err
		}
		letters = append(letters, readDeadLetter(entry, values))
	}
	next, _ = list[0].(string)
	return letters, next, nil
}

// LastDead reads the last n dead letters of a topic (n is 1 to 1000), the oldest of
// them first.
func (s *Timers) LastDead(ctx context.Context, topic string, n int) ([]DeadLetter, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return nil, err
	}
	if n < 1 || n > layout.MaxPage {
		return nil, fmt.Errorf("%w: n: %d, want 1 to %d", wakebelltype.ErrInvalid, n, layout.MaxPage)
	}
	var all []DeadLetter
	for from := "+"; from != "" && len(all) < n; {
		list, err := s.RunList(ctx, 1, lastDeadScript, []string{s.keys.Of(topic).Dead}, from, n-len(all), layout.DeadPageBytes)
		if err != nil {
			return nil, fmt.Errorf("dead letters of %q: %w", topic, err)
		}
		page, next, err := readDeadLetters(list)
		if err != nil {
			return nil, err
		}
		all, from = append(all, page...), next
	}
	slices.Reverse(all)
	return all, nil
}

// DeadLetter reads one dead letter. The error wraps [wakebelltype.ErrNotFound] if there
// is none.
func (s *Timers) DeadLetter(ctx context.Context, topic, entry string) (DeadLetter, error) {
	if entry == "" {
		return DeadLetter{}, fmt.Errorf("%w: entry: empty", wakebelltype.ErrInvalid)
	}
	letters, _, err := s.DeadLetters(ctx, topic, wakebelltype.DeadFilter{Entry: entry}, "", 1)
	if err == nil && len(letters) == 0 {
		err = fmt.Errorf("%w: dead letter %q of %q", wakebelltype.ErrNotFound, entry, topic)
	}
	if err != nil {
		return DeadLetter{}, err
	}
	return letters[0], nil
}

// readDeadLetter ignores what it cannot read, because another program may have
// added the entry.
func readDeadLetter(entry string, values []string) DeadLetter {
	d := DeadLetter{Entry: entry}
	for ; len(values) >= 2; values = values[2:] {
		switch value := values[1]; values[0] {
		case "id":
			d.ID = value
		case "key":
			d.Key = value
		case "payload":
			d.Payload = []byte(value)
		case "claims":
			d.Claims, _ = strconv.Atoi(value)
		case "failures":
			d.Failures, _ = strconv.Atoi(value)
		case "reason":
			d.Reason = value
		case "activation":
			d.Activation = scripts.ReadInstant(value)
		case "at":
			d.At = scripts.ReadInstant(value)
		}
	}
	return d
}
