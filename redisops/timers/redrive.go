package timers

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	defaultRate   = 100
	maxRate       = 10_000
	redriveBatch  = 100 // dead letters of one script call, fewer at low rates
	batchesSecond = 10  // script calls per second at low rates
)

// CheckRedrive checks the rate of a redrive, and sets its default.
func CheckRedrive(o *wakebelltype.RedriveOptions) error {
	switch {
	case o.Rate < 0 || o.Rate > maxRate:
		return fmt.Errorf("%w: rate: %d a second, want 1 to %d", wakebelltype.ErrInvalid, o.Rate, maxRate)
	case o.Rate == 0:
		o.Rate = defaultRate
	}
	return nil
}

// RedrivePage returns how many dead letters a redrive with a rate looks at in a step.
func RedrivePage(rate int) int { return min(redriveBatch, max(1, rate/batchesSecond)) }

const redriveCodes = "dolb"

// redriven returns how many dead letters became timers.
func redriven(r wakebelltype.RedriveResult) int64 { return r.Redriven + r.Overwritten }

// Redrive turns dead letters into timers again, the oldest first, and deletes them.
// Each is one atomic step. Attempts are counted from zero, and the activation is
// now plus In. Timers that are dead-lettered during the call are left for the next
// one.
//
// Redrive runs until all dead letters are done or ctx ends, and returns the result
// so far with the error. A step whose reply was lost and that is sent again within
// two minutes returns its first answer. With a filter for one Entry, the error
// wraps [wakebelltype.ErrNotFound] if there is no such dead letter.
func (s *Timers) Redrive(ctx context.Context, topic string, o wakebelltype.RedriveOptions) (wakebelltype.RedriveResult, error) {
	return s.WithFence(nil).Redrive(ctx, topic, o)
}

// Redrive is [Timers.Redrive] behind the fence.
func (s Fenced) Redrive(ctx context.Context, topic string, o wakebelltype.RedriveOptions) (wakebelltype.RedriveResult, error) {
	var done wakebelltype.RedriveResult
	if err := layout.CheckTopic(topic); err != nil {
		return done, err
	}
	if err := CheckRedrive(&o); err != nil {
		return done, err
	}
	incarnation := rand.Text()
	for from, upto, call := "-", "", 1; from != ""; call++ {
		page, next, end, err := s.redrivePage(ctx, topic, &o, from, upto, incarnation, call)
		if err != nil {
			return done, fmt.Errorf("redrive on %q: %w", topic, err)
		}
		before := redriven(done)
		for _, letter := range page {
			done.Add(letter.Outcome)
			if o.Each != nil {
				o.Each(letter)
			}
		}
		s.Metrics.Redriven(ctx, topic, redriven(done)-before)
		if from, upto = next, end; from == "" {
			break
		}
		select {
		case <-ctx.Done():
			return done, fmt.Errorf("redrive on %q: %w", topic, ctx.Err())
		case <-time.After(time.Duration(redriven(done)-before) * time.Second / time.Duration(o.Rate)):
		}
	}
	switch {
	case redriven(done) > 0:
		s.Remember(ctx, topic)
	case o.Filter.Entry != "" && done == wakebelltype.RedriveResult{}:
		return done, fmt.Errorf("%w: dead letter %q of %q", wakebelltype.ErrNotFound, o.Filter.Entry, topic)
	}
	return done, nil
}

func (s Fenced) redrivePage(ctx context.Context, topic string, o *wakebelltype.RedriveOptions, from, upto, incarnation string, call int) (page []wakebelltype.RedrivenLetter, next, end string, err error) {
	args, err := walkArgs(o.Filter, from, upto, RedrivePage(o.Rate))
	if err != nil {
		return nil, "", "", err
	}
	overwrite := "0"
	if o.Overwrite {
		overwrite = "1"
	}
	k := s.keys.Of(topic)
	args = append(args, overwrite, scripts.DelayMicros(o.In), call)
	var list []any
	err = s.Counted(ctx, func(counting bool) (err error) {
		keys := []string{k.Timeline, k.Payloads, k.Leases, k.Dead, k.Hint, k.Stream(incarnation, 0), k.Counts}
		if !counting {
			keys[6] = keys[0] // a key that is not used needs no right of its own
		}
		return s.orKeyless(func() error {
			return s.orUnfenced(s.fence, func(f *Fence) (err error) {
				keys, args := scripts.WithGuards(f.Guards(s.keys, topic), append(keys, s.orderKeys(k)...), args)
				list, err = s.RunList(ctx, 2, redriveScript, keys, args...)
				return err
			})
		})
	})
	if err != nil {
		return nil, "", "", err
	}
	values, err := scripts.Texts(list)
	if err != nil {
		return nil, "", "", err
	}
	for v := values[2:]; len(v) >= 3; v = v[3:] {
		outcome := wakebelltype.RedriveOutcome(strings.Index(redriveCodes, v[2]) + 1)
		page = append(page, wakebelltype.RedrivenLetter{Entry: v[0], ID: v[1], Outcome: outcome})
	}
	return page, values[0], values[1], nil
}

// DeleteDead deletes dead letters and returns their number. Timers that are
// dead-lettered during the call stay. After an error or the end of ctx, it returns
// the number deleted so far with the error. With a filter for one Entry, the error
// wraps [wakebelltype.ErrNotFound] if there is no such dead letter.
func (s *Timers) DeleteDead(ctx context.Context, topic string, f wakebelltype.DeadFilter) (deleted int64, err error) {
	if err := layout.CheckTopic(topic); err != nil {
		return 0, err
	}
	k, incarnation := s.keys.Of(topic), rand.Text()
	for from, upto, call := "-", "", 1; from != ""; call++ {
		args, err := walkArgs(f, from, upto, layout.MaxPage)
		if err != nil {
			return deleted, err
		}
		list, err := s.RunList(ctx, 3, deleteDeadScript, []string{k.Dead, k.Stream(incarnation, 0)}, append(args, call)...)
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
		s.Metrics.Deleted(ctx, topic, n)
		from, upto = values[0], values[1]
	}
	if f.Entry != "" && deleted == 0 {
		return 0, fmt.Errorf("%w: dead letter %q of %q", wakebelltype.ErrNotFound, f.Entry, topic)
	}
	return deleted, nil
}
