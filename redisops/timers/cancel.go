package timers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// Presence says what a cancel found.
type Presence uint8

// What Cancel found under an id.
const (
	Absent  Presence = iota + 1 // there was no such timer
	Pending                     // it will not fire
	Running                     // a handler runs; its holder is told
)

const presenceLetters = "apr"

func (p Presence) String() string {
	switch p {
	case Absent:
		return "absent"
	case Pending:
		return "pending"
	case Running:
		return "running"
	default:
		return "unknown"
	}
}

// Cancel removes timers, at most 500 in a round trip, and answers for each in
// order what it found. A timer that a Python peer handles is found pending.
// When a later round trip fails, the answers of those before it are returned
// beside the error.
func (s *Timers) Cancel(ctx context.Context, topic string, ids ...string) ([]Presence, error) {
	return s.CancelKeyed(ctx, topic, nil, ids...)
}

// CancelKeyed is Cancel with an idempotency key; nil: none.
func (s *Timers) CancelKeyed(ctx context.Context, topic string, key *Key, ids ...string) ([]Presence, error) {
	if err := checkTopic(topic); err != nil {
		return nil, err
	}
	k := s.keys.of(topic)
	found := make([]Presence, 0, len(ids))
	for part := range slices.Chunk(ids, batchEntries) {
		args := make([]any, len(part))
		for i := range part {
			args[i] = &part[i]
		}
		reply, err := s.runKeyed(ctx, cancelScript, keyedCancelScript, k, key.part(len(found)),
			[]string{k.timeline, k.payloads, k.leases, k.hint}, args)
		if err == nil && len(reply) != len(part) {
			err = fmt.Errorf("%w: %d answers for %d ids", scripts.ErrReply, len(reply), len(part))
		}
		if err != nil {
			return found, fmt.Errorf("cancel on %q: %w", topic, err)
		}
		for i := range part {
			found = append(found, Presence(strings.IndexByte(presenceLetters, reply[i])+1))
		}
	}
	return found, nil
}

// CancelAll removes every timer of the topic and answers how many there were.
// Dead letters stay.
func (s *Timers) CancelAll(ctx context.Context, topic string) (int64, error) {
	if err := checkTopic(topic); err != nil {
		return 0, err
	}
	k := s.keys.of(topic)
	reply, err := s.RunText(ctx, cancelAllScript, []string{k.timeline, k.payloads, k.leases, k.hint})
	if err != nil {
		return 0, fmt.Errorf("cancel all on %q: %w", topic, err)
	}
	return strconv.ParseInt(reply, 10, 64)
}
