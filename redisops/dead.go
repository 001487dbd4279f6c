package redisops

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

const deadPageBytes = 1 << 20

// DeadLetter is a timer that was given up.
type DeadLetter struct {
	Entry      string // its own id, in the order of dying
	ID         string // of the timer
	Payload    []byte
	Claims     int // deliveries
	Failures   int // nacks
	Reason     string
	Activation time.Time // for when it was scheduled
	At         time.Time // when it died
}

var streamID = regexp.MustCompile(`^\d+-\d+$`)

// DeadLetters reads a page of dead letters, the oldest first. After is the
// Entry to go on after, empty at the start; next is empty at the end. A page
// holds at most limit letters (1 to 1000; 0 means 100) and about 1 MiB.
func (s *Timers) DeadLetters(ctx context.Context, topic, after string, limit int) (letters []DeadLetter, next string, err error) {
	if err := checkTopic(topic); err != nil {
		return nil, "", err
	}
	if limit < 0 || limit > maxPage {
		return nil, "", fmt.Errorf("%w: limit: %d, want 1 to %d", ErrInvalid, limit, maxPage)
	}
	if limit == 0 {
		limit = defaultPage
	}
	if after != "" && !streamID.MatchString(after) {
		return nil, "", fmt.Errorf("%w: after: %q is not the Entry of a dead letter", ErrInvalid, after)
	}
	list, err := s.runList(ctx, 1, deadScript, []string{s.keys.of(topic).dead}, after, limit, deadPageBytes)
	if err != nil {
		return nil, "", fmt.Errorf("dead letters of %q: %w", topic, err)
	}
	for v := list[1:]; len(v) >= 2; v = v[2:] {
		entry, _ := v[0].(string)
		fields, _ := v[1].([]any)
		values, err := texts(fields)
		if err != nil {
			return nil, "", err
		}
		letters = append(letters, readDeadLetter(entry, values))
	}
	if list[0] == "1" && len(letters) > 0 {
		next = letters[len(letters)-1].Entry
	}
	return letters, next, nil
}

// readDeadLetter takes what it can: an entry that somebody else added is shown
// as far as it can be read.
func readDeadLetter(entry string, values []string) DeadLetter {
	d := DeadLetter{Entry: entry}
	for ; len(values) >= 2; values = values[2:] {
		switch value := values[1]; values[0] {
		case "id":
			d.ID = value
		case "payload":
			d.Payload = []byte(value)
		case "claims":
			d.Claims, _ = strconv.Atoi(value)
		case "failures":
			d.Failures, _ = strconv.Atoi(value)
		case "reason":
			d.Reason = value
		case "activation":
			d.Activation = instantOf(value)
		case "at":
			d.At = instantOf(value)
		}
	}
	return d
}

func instantOf(text string) time.Time {
	score, err := readScore(text)
	if err != nil {
		return time.Time{}
	}
	return instant(score)
}
