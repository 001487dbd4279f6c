package doctor

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// moves looks for timers that have left a topic for another Redis and have not arrived there.
// They are neither listed nor counted, so that a topic looks empty when the command that moves it
// was killed.
func (d *doctor) moves(ctx context.Context, all []*topicExam) {
	pipe := d.RDB.Pipeline()
	replies := make([]*redis.IntCmd, len(all))
	for i, p := range all {
		replies[i] = pipe.Exists(ctx, p.keys.Leaving())
	}
	_, _ = pipe.Exec(ctx) // each reply has its own error
	for i, p := range all {
		switch n, err := replies[i].Result(); {
		case err != nil:
			p.unknown("moves", scripts.Wrap(ctx, nil, err))
		case n > 0:
			p.add("moves", wakebelltype.GradeWarn, "timers are on their way to another Redis", "if no move runs, run wakebell topics move again, or with --abort to put them back")
		default:
			p.add("moves", wakebelltype.GradeGood, "no timers are on their way to another Redis", "")
		}
	}
}
