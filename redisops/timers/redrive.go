package timers

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

const (
	defaultRate   = 100
	maxRate       = 10_000
	redriveBatch  = 100 // letters of one script call, fewer at low rates
	batchesSecond = 10  // script calls a second at low rates
)

// RedriveOptions say which dead letters become timers again, and how.
type RedriveOptions struct {
	Filter DeadFilter

	// In is the delay after which the timers are due; default 0, at once.
	In time.Duration
	// Overwrite redrives also where a timer of the same id exists, which it
	// replaces. Without it such a letter is skipped.
	Overwrite bool
	// Rate is how many timers are made a second, 1 to 10,000; 0 means 100.
	Rate int
	// Each, if not nil, is told of every letter. It is called from the goroutine
	// of Redrive.
	Each func(RedrivenLetter)
}

func (o *RedriveOptions) check() error {
	switch {
	case o.Rate < 0 || o.Rate > maxRate:
		return fmt.Errorf("%w: rate: %d a second, want 1 to %d", redisops.ErrInvalid, o.Rate, maxRate)
	case o.Rate == 0:
		o.Rate = defaultRate
	}
	return nil
}

// RedriveOutcome says what became of a dead letter.
type RedriveOutcome uint8

// What Redrive made of a letter.
const (
	Redriven      RedriveOutcome = iota + 1 // it is a timer again
	Overwritten                             // the same; it replaced a timer of its id
	SkippedLive                             // it stays: there is a timer of its id
	SkippedBroken                           // it stays: it has no id or no payload
)

const redriveLetters = "dolb"

func (o RedriveOutcome) String() string {
	switch o {
	case Redriven:
		return "redriven"
	case Overwritten:
		return "overwritten"
	case SkippedLive:
		return "skipped live"
	case SkippedBroken:
		return "skipped broken"
	default:
		return "unknown"
	}
}

// RedrivenLetter names a dead letter and what became of it.
type RedrivenLetter struct {
	Entry   string // of the letter
	ID      string // of the timer
	Outcome RedriveOutcome
}

// RedriveResult counts the letters by what became of them.
type RedriveResult struct {
	Redriven, Overwritten, SkippedLive, SkippedBroken int64
}

// Add counts a letter.
func (r *RedriveResult) Add(o RedriveOutcome) {
	switch o {
	case Redriven:
		r.Redriven++
	case Overwritten:
		r.Overwritten++
	case SkippedLive:
		r.SkippedLive++
	case SkippedBroken:
		r.SkippedBroken++
	}
}

// made is how many became timers.
func (r *RedriveResult) made() int64 { return r.Redriven + r.Overwritten }

// Redrive makes timers of dead letters again, the oldest first, and deletes
// those letters; for each that is one step, whole or not at all. Attempts are
// counted anew, and now plus In is the activation. What dies meanwhile is left
// for the next call.
//
// It runs until all are done or ctx ends; what was done until then is returned
// beside the error. A step whose reply was lost and that is made again within two
// minutes answers as it did. With a filter for one Entry, [ErrNotFound] says that there is
// no such letter.
func (s *Timers) Redrive(ctx context.Context, topic string, o RedriveOptions) (RedriveResult, error) {
	var done RedriveResult
	if err := layout.CheckTopic(topic); err != nil {
		return done, err
	}
	if err := o.check(); err != nil {
		return done, err
	}
	life := rand.Text()
	for from, upto, call := "-", "", 1; from != ""; call++ {
		page, next, end, err := s.redrivePage(ctx, topic, &o, from, upto, life, call)
		if err != nil {
			return done, fmt.Errorf("redrive on %q: %w", topic, err)
		}
		before := done.made()
		for _, letter := range page {
			done.Add(letter.Outcome)
			if o.Each != nil {
				o.Each(letter)
			}
		}
		if from, upto = next, end; from == "" {
			break
		}
		select {
		case <-ctx.Done():
			return done, fmt.Errorf("redrive on %q: %w", topic, ctx.Err())
		case <-time.After(time.Duration(done.made()-before) * time.Second / time.Duration(o.Rate)):
		}
	}
	switch {
	case done.made() > 0:
		s.Remember(ctx, topic)
	case o.Filter.Entry != "" && done == RedriveResult{}:
		return done, fmt.Errorf("%w: dead letter %q of %q", redisops.ErrNotFound, o.Filter.Entry, topic)
	}
	return done, nil
}

func (s *Timers) redrivePage(ctx context.Context, topic string, o *RedriveOptions, from, upto, life string, call int) (page []RedrivenLetter, next, end string, err error) {
	limit := min(redriveBatch, max(1, o.Rate/batchesSecond))
	args, err := o.Filter.args(from, upto, limit)
	if err != nil {
		return nil, "", "", err
	}
	overwrite := "0"
	if o.Overwrite {
		overwrite = "1"
	}
	k := s.keys.Of(topic)
	list, err := s.RunList(ctx, 2, redriveScript, []string{k.Timeline, k.Payloads, k.Leases, k.Dead, k.Hint, k.Stream(life, 0)},
		append(args, overwrite, scripts.DelayMicros(o.In), call)...)
	if err != nil {
		return nil, "", "", err
	}
	values, err := scripts.Texts(list)
	if err != nil {
		return nil, "", "", err
	}
	for v := values[2:]; len(v) >= 3; v = v[3:] {
		outcome := RedriveOutcome(strings.Index(redriveLetters, v[2]) + 1)
		page = append(page, RedrivenLetter{Entry: v[0], ID: v[1], Outcome: outcome})
	}
	return page, values[0], values[1], nil
}

// DeleteDead deletes dead letters and answers how many. What dies meanwhile
// stays. After an error or the end of ctx, what was deleted until then is
// returned beside it. With a filter for one Entry, [ErrNotFound] says that
// there is no such letter.
func (s *Timers) DeleteDead(ctx context.Context, topic string, f DeadFilter) (deleted int64, err error) {
	if err := layout.CheckTopic(topic); err != nil {
		return 0, err
	}
	k, life := s.keys.Of(topic), rand.Text()
	for from, upto, call := "-", "", 1; from != ""; call++ {
		args, err := f.args(from, upto, layout.MaxPage)
		if err != nil {
			return deleted, err
		}
		list, err := s.RunList(ctx, 3, deleteDeadScript, []string{k.Dead, k.Stream(life, 0)}, append(args, call)...)
		if err != nil {
			return deleted, fmt.Errorf("delete dead letters of %q: %w", topic, err)
		}
		values, err := scripts.Texts(list)
		if err != nil {
			return deleted, err
		}
		n, err := strconv.ParseInt(values[2], 10, 64)
		if err != nil {
			return deleted, fmt.Errorf("%w: %w", scripts.ErrReply, err)
		}
		deleted += n
		from, upto = values[0], values[1]
	}
	if f.Entry != "" && deleted == 0 {
		return 0, fmt.Errorf("%w: dead letter %q of %q", redisops.ErrNotFound, f.Entry, topic)
	}
	return deleted, nil
}
