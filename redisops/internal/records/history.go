package records

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	historyCap  = 10_000             // attempts of a Store
	historyAge  = 7 * 24 * time.Hour // of the oldest attempt
	historyPage = 100                // entries that a listing reads at once

	// MaxHistoryBatch bounds the attempts of one WriteHistory.
	MaxHistoryBatch = 500

	maxHistoryID    = 512 // bytes
	maxHistoryError = 256 // bytes
)

// streamID is the id of an entry of a stream.
var streamID = regexp.MustCompile(`^\d+-\d+$`)

// outcomeMarks are the marks of the outcomes in a packed attempt.
var outcomeMarks = map[wakebelltype.EventKind]byte{
	wakebelltype.EventAcked: 'a', wakebelltype.EventRetried: 'r', wakebelltype.EventDead: 'd', wakebelltype.EventDiscarded: 'x',
	wakebelltype.EventCrashed: 'p', wakebelltype.EventSuperseded: 's', wakebelltype.EventCancelled: 'c', wakebelltype.EventLost: 'l',
	wakebelltype.EventSnoozed: 'z', wakebelltype.EventExpired: 'e',
}

// WriteHistory adds attempts of one node to the history, at most MaxHistoryBatch.
func (s Store) WriteHistory(ctx context.Context, node string, attempts []wakebelltype.Attempt) error {
	if len(attempts) == 0 || len(attempts) > MaxHistoryBatch {
		return fmt.Errorf("%w: attempts: %d, want 1 to %d", wakebelltype.ErrInvalid, len(attempts), MaxHistoryBatch)
	}
	packed := make([]byte, 0, 64*len(attempts))
	for i := range attempts {
		packed = appendAttempt(packed, &attempts[i])
	}
	_, err := s.RunText(ctx, historyScript, []string{s.History},
		historyCap, historyAge.Milliseconds(), node, len(attempts), packed)
	if err != nil {
		return fmt.Errorf("history of %q: %w", s.Name, err)
	}
	return nil
}

// appendAttempt packs an attempt: "id_bytes error_bytes attempt started took outcome\n",
// instants and durations in µs, then the id and the error.
func appendAttempt(to []byte, a *wakebelltype.Attempt) []byte {
	id, failure := text.Cut(a.ID, maxHistoryID), text.Cut(a.Error, maxHistoryError)
	for _, n := range [...]int64{int64(len(id)), int64(len(failure)), int64(a.Attempt), a.Started.UnixMicro(), a.Took.Microseconds()} {
		to = append(strconv.AppendInt(to, n, 10), ' ')
	}
	to = append(to, outcomeMarks[a.Outcome], '\n')
	return append(append(to, id...), failure...)
}

// readAttempts unpacks the attempts of an entry. What cannot be read is left out.
func readAttempts(m redis.XMessage) (all []wakebelltype.Attempt) {
	packed, _ := m.Values["attempts"].(string)
	node, _ := m.Values["node"].(string)
	r := scripts.Reader{Text: packed}
	for r.Text != "" {
		idBytes, errorBytes := r.Count(), r.Count()
		a := wakebelltype.Attempt{Node: node, Attempt: r.Integer()}
		a.Started = time.UnixMicro(int64(r.Integer())).UTC()
		a.Took = time.Duration(r.Integer()) * time.Microsecond
		letter := r.Word()
		a.ID, a.Error = strings.Clone(r.Take(idBytes)), strings.Clone(r.Take(errorBytes))
		if r.Err != nil {
			return all
		}
		for kind, l := range outcomeMarks {
			if letter == string(l) {
				a.Outcome = kind
			}
		}
		a.Cursor = m.ID + "/" + strconv.Itoa(len(all))
		all = append(all, a)
	}
	return all
}

// ReadHistory reads a page of the attempts that the filter selects, the oldest first. After
// is empty for the first page, and the next value of the previous page otherwise; next
// is empty after the last page. A page may be empty and have a next page. Filter.Last
// is ignored.
func (s Store) ReadHistory(ctx context.Context, f wakebelltype.HistoryFilter, after string, limit int) (attempts []wakebelltype.Attempt, next string, err error) {
	from, skip := "-", -1
	if after != "" {
		entry, index, _ := strings.Cut(after, "/")
		if skip, err = strconv.Atoi(index); err != nil || !streamID.MatchString(entry) {
			return nil, "", fmt.Errorf("%w: after: %q is not a valid page cursor", wakebelltype.ErrInvalid, after)
		}
		from = entry
	}
	found, err := s.historyPage(ctx, func() *redis.XMessageSliceCmd { return s.RDB.XRangeN(ctx, s.History, from, "+", historyPage) })
	if err != nil {
		return nil, "", err
	}
	for _, m := range found {
		all := readAttempts(m)
		if m.ID == from {
			all = all[min(skip+1, len(all)):]
		}
		for _, a := range all {
			if limit > 0 && len(attempts) == limit {
				return attempts, next, nil
			}
			if next = a.Cursor; selectsAttempt(f, a) {
				attempts = append(attempts, a)
			}
		}
	}
	if len(found) < historyPage {
		next = ""
	}
	return attempts, next, nil
}

// LastHistory returns the newest n of the attempts that the filter selects, 1 to
// 1,000, the oldest of them first.
func (s Store) LastHistory(ctx context.Context, f wakebelltype.HistoryFilter, n int) (attempts []wakebelltype.Attempt, err error) {
	if n < 1 || n > layout.MaxPage {
		return nil, fmt.Errorf("%w: last: %d, want 1 to %d", wakebelltype.ErrInvalid, n, layout.MaxPage)
	}
	for from := "+"; ; {
		found, err := s.historyPage(ctx, func() *redis.XMessageSliceCmd { return s.RDB.XRevRangeN(ctx, s.History, from, "-", historyPage) })
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			from = "(" + m.ID
			for _, a := range slices.Backward(readAttempts(m)) {
				if len(attempts) < n && selectsAttempt(f, a) {
					attempts = append(attempts, a)
				}
			}
		}
		if len(attempts) == n || len(found) < historyPage {
			slices.Reverse(attempts)
			return attempts, nil
		}
	}
}

func (s Store) historyPage(ctx context.Context, read func() *redis.XMessageSliceCmd) (found []redis.XMessage, err error) {
	err = s.Again(ctx, func() (err error) {
		found, err = read().Result()
		return scripts.Wrap(ctx, []string{s.History}, err)
	})
	if err != nil {
		return nil, fmt.Errorf("history of %q: %w", s.Name, err)
	}
	return found, nil
}

// selectsAttempt reports whether a filter selects an attempt. It ignores Last.
func selectsAttempt(f wakebelltype.HistoryFilter, a wakebelltype.Attempt) bool {
	return (f.ID == "" || f.ID == a.ID) && (f.Outcome == "" || f.Outcome == a.Outcome) &&
		strings.Contains(a.Error, f.Error) && !a.Started.Add(a.Took).Before(f.Since)
}
