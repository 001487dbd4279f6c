package timers

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Timer is a timer as Redis stores it.
type Timer struct {
	ID string

	// Due is the instant at which the timer can be claimed: for a leased timer the
	// lease expiry, after a failure the instant of the next attempt.
	Due time.Time
	// Activation is the instant for which the timer was scheduled. For a timer that
	// a Python peer handles it is unknown and equals Due.
	Activation time.Time
	// NeverDue reports that the timer has an infinite instant; Due and Activation
	// are zero.
	NeverDue bool

	// Key is the key of the timer; empty: none. Parked reports that the timer is due and
	// waits until its key is free: Due is then its instant.
	Key    string
	Parked bool

	Running   bool      // its lease has not expired
	LeaseEnds time.Time // lease expiry of a running timer

	// FirstScheduled is when Debounce first scheduled a timer that has not failed
	// since; zero for any other timer.
	FirstScheduled time.Time

	Claims    int // deliveries so far
	Failures  int // nacks so far
	LastError string

	Payload []byte // Get only
	Cursor  Cursor // List only: its place in the order
}

// Get reads a timer. The error wraps [wakebelltype.ErrNotFound] if there is none. If
// the payload is larger than MaxPayload, the error wraps [wakebelltype.ErrTooLarge],
// and Get returns the rest of the timer with it.
func (s *Timers) Get(ctx context.Context, topic, id string) (Timer, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return Timer{}, err
	}
	k := s.keys.Of(topic)
	var list []any
	err := s.orKeyless(func() (err error) {
		list, err = s.RunList(ctx, 0, getScript, []string{k.Timeline, k.Payloads, k.Leases, s.orderKeys(k)[0]}, id, s.maxPayload())
		return err
	})
	if err != nil {
		return Timer{}, fmt.Errorf("get %q on %q: %w", id, topic, err)
	}
	if len(list) == 0 {
		return Timer{}, fmt.Errorf("%w: %q on %q", wakebelltype.ErrNotFound, id, topic)
	}
	values, err := scripts.Texts(list)
	if err != nil || len(values) != 6 {
		return Timer{}, fmt.Errorf("get %q on %q: %d values: %w", id, topic, len(list), scripts.ErrReply)
	}
	now, err := scripts.ReadScore(values[0])
	if err != nil {
		return Timer{}, err
	}
	t, err := describe(id, values[1], values[2], values[5], now)
	t.Payload = []byte(values[4])
	if err == nil && values[4] == "" && values[3] != "0" {
		err = fmt.Errorf("get %q on %q: %w: it has %s bytes, at most %d are read", id, topic, wakebelltype.ErrTooLarge, values[3], s.maxPayload())
	}
	return t, err
}

// Has returns nil if there is a timer, and otherwise an error that wraps
// [wakebelltype.ErrNotFound].
func (s *Timers) Has(ctx context.Context, topic, id string) error {
	if err := errors.Join(layout.CheckTopic(topic), layout.CheckID(id)); err != nil {
		return err
	}
	key := s.keys.Of(topic).Timeline
	return s.Again(ctx, func() error {
		err := s.RDB.ZScore(ctx, key, id).Err()
		if errors.Is(err, redis.Nil) {
			return fmt.Errorf("%w: %q on %q", wakebelltype.ErrNotFound, id, topic)
		}
		return scripts.Wrap(ctx, []string{key}, err)
	})
}

func describe(id, scoreText, record, entry string, now float64) (Timer, error) {
	score, err := scripts.ReadScore(scoreText)
	if err != nil {
		return Timer{}, err
	}
	t := Timer{ID: id}
	instant, key := readKey(entry)
	t.Key = key
	if math.IsInf(score, 1) {
		t.NeverDue = true
		return t, nil
	}
	t.Due = scripts.Instant(score)
	if t.Parked = score == parkedScore; t.Parked {
		t.Due = instant
	}
	t.Activation = t.Due
	if r, ours := readRecord(record, score); ours {
		if t.Activation = scripts.Instant(r.activation); t.Parked {
			t.Due = t.Activation
		}
		t.Claims, t.Failures, t.LastError = r.claims, r.failures, r.lastError
		if r.first != 0 {
			t.FirstScheduled = scripts.Instant(r.first)
		}
		if t.Running = r.leased && score > now; t.Running {
			t.LeaseEnds = t.Due
		}
	}
	return t, nil
}

// Filter selects timers for List; the zero value selects the first 100 of all.
type Filter struct {
	DueBefore time.Time // only timers due before this instant; zero: all
	Leased    bool      // only running timers
	After     Cursor    // of the last timer of the previous page, or its end
	Limit     int       // timers in a page, 1 to 1000; 0 means 100
}

// Cursor marks a timer of a page, or the end of a page. An empty Cursor means the
// start, or that no page follows. It stays valid when timers are added or removed,
// because it names a position in the order, not a count.
type Cursor string

func newCursor(score, id string) Cursor {
	if score == "" {
		return ""
	}
	return Cursor(base64.RawURLEncoding.EncodeToString([]byte(score + " " + id)))
}

func (c Cursor) read() (score, id string, err error) {
	if c == "" {
		return "", "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(string(c))
	score, id, ok := strings.Cut(string(raw), " ")
	if err == nil && ok {
		_, err = scripts.ReadScore(score)
	}
	if err != nil || !ok {
		return "", "", fmt.Errorf("%w: cursor %q is not one that List gave", wakebelltype.ErrInvalid, string(c))
	}
	return score, id, nil
}

// Position is a place in the order of timers that List returns, which is the same in all
// topics.
type Position struct {
	score float64
	id    string
}

// Position returns the place that a cursor marks. The error wraps [wakebelltype.ErrInvalid].
func (c Cursor) Position() (Position, error) {
	text, id, err := c.read()
	if err != nil || c == "" {
		return Position{}, err
	}
	score, err := scripts.ReadScore(text)
	return Position{score, id}, err
}

// Compare returns -1 if p is before q, 1 if it is after q, and otherwise 0.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.score, q.score), strings.Compare(p.id, q.id))
}

// List reads a page of timers, ordered by instant, then id. A call examines at most
// 1,000 timers, so with a filter a page may be empty and yet have a next page. For
// Leased it reads the lease records instead if there are at most 1,000 of them.
func (s *Timers) List(ctx context.Context, topic string, f Filter) (timers []Timer, next Cursor, err error) {
	if err := layout.CheckTopic(topic); err != nil {
		return nil, "", err
	}
	if f.Limit < 0 || f.Limit > layout.MaxPage {
		return nil, "", fmt.Errorf("%w: limit: %d, want 1 to %d", wakebelltype.ErrInvalid, f.Limit, layout.MaxPage)
	}
	if f.Limit == 0 {
		f.Limit = layout.DefaultPage
	}
	score, id, err := f.After.read()
	if err != nil {
		return nil, "", err
	}
	before, leased := "+inf", "0"
	if !f.DueBefore.IsZero() {
		before = scripts.ScoreText(f.DueBefore)
	}
	if f.Leased {
		leased = "1"
	}
	k := s.keys.Of(topic)
	var list []any
	err = s.orKeyless(func() (err error) {
		list, err = s.RunList(ctx, 3, listScript, []string{k.Timeline, k.Payloads, k.Leases, s.orderKeys(k)[0]},
			f.Limit, before, leased, layout.MaxPage, score, id)
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list %q: %w", topic, err)
	}
	values, err := scripts.Texts(list)
	if err != nil {
		return nil, "", err
	}
	now, err := scripts.ReadScore(values[0])
	if err != nil {
		return nil, "", err
	}
	timers = make([]Timer, 0, len(values)/4)
	for v := values[3:]; len(v) >= 4; v = v[4:] {
		t, err := describe(v[0], v[1], v[2], v[3], now)
		if err != nil {
			return nil, "", err
		}
		t.Cursor = newCursor(v[1], v[0])
		timers = append(timers, t)
	}
	return timers, newCursor(values[1], values[2]), nil
}
