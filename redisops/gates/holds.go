package gates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/wakebelltype"
)

// holdDays is for how many days the durations of turns are kept.
const holdDays = 7

// holdsAtOnce bounds the gates of one script.
const holdsAtOnce = 100

// AddHolds adds turns that ended to what is known of their gates. If a reply is lost, they
// may be added twice. Parts that cannot be written do not hold up the others.
func (s *Store) AddHolds(ctx context.Context, held map[string]gate.Holds) error {
	parts := map[int][]string{}
	for name := range held {
		part := s.Part(name)
		parts[part] = append(parts[part], name)
	}
	var errs []error
	for _, names := range parts {
		for some := range slices.Chunk(names, holdsAtOnce) {
			errs = append(errs, s.addHolds(ctx, some, held))
		}
	}
	return errors.Join(errs...)
}

// addHolds adds the turns at gates of one part.
func (s *Store) addHolds(ctx context.Context, names []string, held map[string]gate.Holds) error {
	var keys []string
	args := []any{holdDays}
	for _, name := range names {
		counts := held[name]
		texts := make([]string, len(counts))
		for i, n := range counts {
			texts[i] = strconv.FormatInt(n, 10)
		}
		keys, args = append(keys, s.keys(name).holds(name)), append(args, strings.Join(texts, " "))
	}
	if _, err := s.RunText(ctx, holdsScript, keys, args...); err != nil {
		return fmt.Errorf("durations of turns: %w", err)
	}
	return nil
}

// readHolds sums up the fields of the durations of a gate's turns: day, a colon and the
// index of the bound.
func readHolds(fields []string, now time.Time) []wakebelltype.GateHolds {
	var counts gate.Holds
	oldest := now.Unix()/int64(24*time.Hour/time.Second) - holdDays
	total := int64(0)
	for i := 0; i+1 < len(fields); i += 2 {
		dayText, indexText, _ := strings.Cut(fields[i], ":")
		day, err := strconv.ParseInt(dayText, 10, 64)
		index, err2 := strconv.Atoi(indexText)
		n, err3 := strconv.ParseInt(fields[i+1], 10, 64)
		if err != nil || err2 != nil || err3 != nil || day <= oldest || index < 0 || index >= len(counts) || n < 0 {
			continue // another program wrote it, or it is old
		}
		counts[index] += n
		total += n
	}
	if total == 0 {
		return nil
	}
	held := make([]wakebelltype.GateHolds, len(counts))
	for i, n := range counts {
		held[i].Turns = n
		if i < len(gate.HoldBounds) {
			held[i].UpTo = gate.HoldBounds[i]
		}
	}
	return held
}
