package joins

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	firstCheck  = 15 * time.Second // after which a join is audited; doubled for each audit of all its parts
	openCheck   = time.Minute      // of one that is open
	lastCheck   = 10 * time.Minute
	nextPage    = time.Second      // until the next part of an audit
	checkAtMost = 20               // joins of one call of Audit
	holdFor     = time.Minute      // for how long a node has a join that it audits
	pagesAtMost = 10               // of one audit of a join
	missingFor  = 30 * time.Second // after which a part that was added should exist
)

// checkIn sets when a join is audited next; 0: never again.
func (s *Store) checkIn(ctx context.Context, r Ref, delay time.Duration) error {
	arg := ""
	if delay > 0 {
		arg = scripts.DelayText(delay)
	}
	_, err := s.timers.RunText(ctx, checkScript, []string{s.timers.Keys().Joins}, member(wakebelltype.Part{Topic: r.Topic, ID: r.ID}), arg)
	if err != nil {
		return s.failed(r, err)
	}
	return nil
}

// Audit looks at joins whose turn it is, at most checkAtMost, and returns in how much time
// another one has its turn; negative: there is none. It runs timers that were not run when all
// parts had ended, and notes how parts have ended whose nodes have not done so.
func (s *Store) Audit(ctx context.Context) (next time.Duration, err error) {
	// Most servers have no joins, and the script costs five commands. It explains an error, too.
	if found, err := s.timers.RDB.Exists(ctx, s.timers.Keys().Joins).Result(); err == nil && found == 0 {
		return -1, nil
	}
	next, due, err := s.due(ctx, checkAtMost)
	if err != nil || len(due) == 0 {
		return next, err
	}
	now, err := s.timers.RDB.Time(ctx).Result()
	if err != nil {
		return next, scripts.Wrap(ctx, nil, err)
	}
	var errs []error
	for _, text := range due {
		p, ok := partOf(text)
		if !ok { // of another program
			_, err := s.timers.RunText(ctx, checkScript, []string{s.timers.Keys().Joins}, text, "")
			errs = append(errs, err)
			continue
		}
		r := Ref{Topic: p.Topic, ID: p.ID}
		next, err := s.audit(ctx, r, now)
		if err == nil {
			err = s.checkIn(ctx, r, next)
		}
		errs = append(errs, err) // the others are audited; this one again after holdFor
	}
	next, _, err = s.due(ctx, 0)
	return next, errors.Join(append(errs, err)...)
}

// due takes joins whose turn it is, at most n, and returns in how much time the next one has
// its turn; negative: there is none.
func (s *Store) due(ctx context.Context, n int) (next time.Duration, due []string, err error) {
	list, err := s.timers.RunList(ctx, 1, dueScript, []string{s.timers.Keys().Joins}, n, scripts.DelayText(holdFor))
	if err != nil {
		return 0, nil, err
	}
	if due, err = scripts.Texts(list); err != nil {
		return 0, nil, err
	}
	if due[0] == "" {
		return -1, due[1:], nil
	}
	delay, err := scripts.ReadScore(due[0])
	return scripts.Between(0, delay), due[1:], err
}

// audit looks at one join, and returns when it is to be done again; 0: never.
func (s *Store) audit(ctx context.Context, r Ref, now time.Time) (next time.Duration, err error) {
	result := metrics.AuditNothing
	defer func() {
		if err == nil {
			s.timers.Metrics.JoinAudited(ctx, r.Topic, result)
		}
	}()
	r, head, err := s.head(ctx, r)
	if errors.Is(err, wakebelltype.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	t, err := s.timerOf(ctx, r)
	switch {
	case err != nil:
		return 0, err
	case t == nil && head.audits == 0: // its timer may be on the way
		return 2 * firstCheck, s.note(ctx, r, "", "audits", "1")
	case t == nil:
		return 0, s.note(ctx, r, millis(After))
	case head.Open: // its parts may be on the way
		return openCheck, s.note(ctx, r, lifeOf(t, now), "audits", "1")
	}
	if head.Complete() && !head.ran {
		if err := s.fire(ctx, r); err != nil {
			return 0, err
		}
		head.ran, result = true, metrics.AuditTimer
	}
	if !head.ran {
		var noted int
		if head.rank, noted, err = s.look(ctx, r, head.rank, now); err != nil {
			return 0, err
		}
		if noted > 0 {
			result = metrics.AuditEnds
		}
	}
	if head.rank == 0 {
		head.audits++
	}
	if err := s.note(ctx, r, lifeOf(t, now), "rank", strconv.Itoa(head.rank), "audits", strconv.Itoa(head.audits)); err != nil {
		return 0, err
	}
	if head.rank > 0 {
		return nextPage, nil
	}
	return min(firstCheck<<min(head.audits, 10), lastCheck), nil
}

// lifeOf is for how long a join stays whose timer exists.
func lifeOf(t *timers.Timer, now time.Time) string {
	if t.NeverDue {
		return millis(math.MaxInt64)
	}
	return millis(max(t.Due.Sub(now), 0) + Retention)
}

// millis is a duration that a script takes as a number of ms, at most 100 years.
func millis(d time.Duration) string {
	return strconv.FormatInt(min(d.Milliseconds(), 100*365*24*time.Hour.Milliseconds()), 10)
}

// look looks at the parts of a join from a rank on that have not ended, and notes the ends of
// those that do not exist any more, of which it returns the number. It returns the rank at
// which the next call goes on; 0: it has seen all.
func (s *Store) look(ctx context.Context, r Ref, from int, now time.Time) (rank, noted int, err error) {
	for range pagesAtMost {
		page, err := s.Page(ctx, r, from, layout.MaxPage, true)
		if err != nil {
			return 0, noted, ignoreAbsent(err)
		}
		n, err := s.lookAt(ctx, r, page.Ends, now)
		if noted += n; err != nil {
			return 0, noted, err
		}
		if from = page.Next; from == 0 || len(page.Ends) >= layout.MaxPage/2 {
			break
		}
	}
	return from, noted, nil
}

// lookAt notes the ends of those of some parts that do not exist any more.
func (s *Store) lookAt(ctx context.Context, r Ref, parts []End, now time.Time) (noted int, err error) {
	ends, err := s.gone(ctx, parts, now)
	if err != nil || len(ends) == 0 {
		return 0, err
	}
	_, noted, err = s.settle(ctx, r, false, ends)
	return noted, err
}
