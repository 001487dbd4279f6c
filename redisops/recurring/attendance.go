package recurring

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// Attendance counts the schedules, of all prefixes, and the beats that fire them.
type Attendance struct {
	Schedules int64
	Beats     int64 // that are connected; -1: unknown
	// Overdue is for how long the run has been due that waits longest; 0: none is due.
	Overdue time.Duration
	Latest  string // full name of the schedule of that run
}

// Attendance reads who attends to the schedules. It leaves nothing in Redis that could
// outlive a beat: a beat of Wakebell is known by its subscription, which ends with its
// connection, and one of Python by RedBeat's lock, which expires.
func (b *Store) Attendance(ctx context.Context) (Attendance, error) {
	found := Attendance{Beats: -1}
	now, err := b.Now(ctx)
	if err != nil {
		return found, fmt.Errorf("attendance: %w", err)
	}
	var channels []string
	locked := false
	for _, part := range b.Parts() {
		channels = append(channels, part.hint())
		held, err := part.attend(ctx, now, &found)
		if err != nil {
			return found, fmt.Errorf("attendance: %w", err)
		}
		locked = locked || held
	}
	beats := b.timers.Listeners(ctx, channels)
	for _, channel := range channels { // each beat listens for all parts
		if n, known := beats[channel]; known && (found.Beats < 0 || n < found.Beats) {
			found.Beats = n
		}
	}
	if locked {
		found.Beats = max(found.Beats, 1)
	}
	return found, nil
}

// attend adds the schedules of a part, and reports whether a beat holds its lock.
func (b *Store) attend(ctx context.Context, now time.Time, to *Attendance) (locked bool, err error) {
	var count, lock *redis.IntCmd
	var first *redis.ZSliceCmd
	if err := b.again(ctx, func() error {
		pipe := b.rdb().Pipeline()
		count, lock = pipe.ZCard(ctx, b.schedule()), pipe.Exists(ctx, b.lock())
		// A schedule that does not run again has a score below 0.
		first = pipe.ZRangeByScoreWithScores(ctx, b.schedule(), &redis.ZRangeBy{Min: "0", Max: "+inf", Count: 1})
		_, err := pipe.Exec(ctx)
		return err
	}); err != nil {
		return false, err
	}
	to.Schedules += count.Val()
	for _, z := range first.Val() {
		member, _ := z.Member.(string)
		if late := now.Sub(scripts.Instant(z.Score)); b.ours(member) && late > to.Overdue {
			to.Overdue, to.Latest = late, b.nameOf(member)
		}
	}
	return lock.Val() > 0, nil
}
