package simulate

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/firing"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/redisops/recurring"
)

// runs is the topic of the runs of recurring schedules.
const runs = "runs"

// beat is a process that fires recurring schedules, with the engine as it is in production.
type beat struct {
	sim    *sim
	name   string
	rdb    *redis.Client
	link   *link
	store  *recurring.Store
	plain  *recurring.Store // without losses, of clients
	engine *firing.Engine
	life   int // rises with each end of the process, and with each turn that is planned
	down   bool
}

// link is a client hook that loses one command, or its answer.
type link struct {
	left   int  // commands until then; 0: none is lost
	answer bool // it is the answer that is lost
}

// DialHook implements redis.Hook.
func (l *link) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (l *link) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return l.carry(func() error { return next(ctx, cmd) }, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (l *link) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return l.carry(func() error { return next(ctx, cmds) }, cmds...)
	}
}

func (l *link) carry(send func() error, cmds ...redis.Cmder) error {
	lost := l.left == 1
	l.left = max(l.left-1, 0)
	if !lost || l.answer {
		if err := send(); err != nil || !lost {
			return err
		}
	}
	for _, cmd := range cmds {
		cmd.SetErr(errCut)
	}
	return errCut
}

func newBeat(s *sim, number int, options *redis.Options) *beat {
	rdb, l := redis.NewClient(options), new(link)
	rdb.AddHook(l)
	b := &beat{sim: s, name: "b" + strconv.Itoa(number), rdb: rdb, link: l, store: recurring.New(s.store(rdb)), plain: recurring.New(s.store(s.rdb))}
	b.start()
	return b
}

// longestTurn is how long a beat waits at most between two turns.
const longestTurn = 5 * time.Minute

// start starts the process. It looks at the schedules when there are some.
func (b *beat) start() {
	b.down = false
	b.engine = firing.New(firing.Config{
		Store: b.store, Log: slog.New(slog.DiscardHandler), MaxInterval: longestTurn,
		LookEvery: b.sim.plan.Shape.looks(), Maker: firing.Maker{Store: b.store, Limit: 1 << 20},
	})
	b.hint()
}

// hint has the beat look at the schedules, as the channel of Redis does.
func (b *beat) hint() {
	if !b.down && len(b.sim.schedules) > 0 {
		b.engine.Hint()
		b.later(b.sim.transit())
	}
}

// later plans the next turn.
func (b *beat) later(d time.Duration) {
	b.life++
	this := b.life
	b.sim.after(d, func() {
		if b.life == this && !b.down {
			b.turn()
		}
	})
}

// turn has the engine fire what is due. The network may lose one of its commands, or the answer.
func (b *beat) turn() {
	s := b.sim
	b.link.left, b.link.answer = 0, false
	if s.cut() {
		b.link.left, b.link.answer = 1+s.random.IntN(4), s.chance(0.5)
	}
	s.loseNext()
	wait, err := b.engine.Turn(s.ctx)
	b.link.left = 0
	s.judge.runsFired()
	s.minder.fired()
	switch {
	case errors.Is(err, errCut):
		s.note("%s loses a command: %v", b.name, err)
		wait = s.plan.Timeout
	case err != nil:
		s.broken("errors", "a turn of %s: %v", b.name, err)
	}
	if len(s.schedules) > 0 {
		b.later(max(wait, time.Millisecond))
	}
}

// crash ends the process, which starts again after a while.
func (b *beat) crash(again time.Duration) {
	if b.down {
		return
	}
	b.sim.note("%s crashes", b.name)
	b.down = true
	b.life++
	b.sim.after(again, b.start)
}

// putSchedule stores a recurring schedule, as a System does.
func (c *client) putSchedule(o Op) {
	s := c.sim
	name := "s" + strconv.Itoa(o.A%4)
	if s.schedules[name] != nil {
		return
	}
	r, now := s.rule(o.B), time.Now()
	e := recur.Entry{
		Definition: recur.Definition{Name: name, Task: runs, Enabled: true}, Meta: recur.Meta{LastRunAt: now.Truncate(time.Microsecond)},
		Ours: recur.Ours{ID: strconv.Itoa(s.result.Done), Topic: runs, HasBody: true, Zone: r.zone, SkipGaps: r.skip, Misfire: r.misfire},
	}
	err := e.SetEvery(r.every, false)
	if r.every == 0 {
		err = e.SetCron(r.cron)
	}
	if err == nil {
		e.SetEnabled(true)
		err = e.Resolve(nil)
	}
	if err == nil {
		err = s.beats[0].plain.Put(s.ctx, name, recur.Raw{}, e.Raw(), recur.Score(e.Plan(now).Next))
	}
	if err != nil {
		s.broken("errors", "put the schedule %s: %v", name, err)
	}
	s.note("schedule %s is %+v", name, *r)
	s.schedules[name] = &schedule{rule: r, from: e.Meta.LastRunAt, fired: map[int64]bool{}}
	for _, b := range s.beats {
		b.hint()
	}
}

// deleteSchedule deletes a recurring schedule. What it has fired stays.
func (c *client) deleteSchedule(name string) {
	s := c.sim
	if s.schedules[name] == nil {
		return
	}
	store := s.beats[0].plain
	found, err := store.Load(s.ctx, name)
	if err != nil {
		s.broken("errors", "load the schedule %s: %v", name, err)
	}
	if existed, err := store.Delete(s.ctx, name, found[0].Ours); err != nil || !existed {
		s.broken("errors", "delete the schedule %s: existed %t, %v", name, existed, err)
	}
	s.judge.runsFired()
	delete(s.schedules, name)
}

// rule returns a rule: in plans of Days one that fires a few times a day.
func (s *sim) rule(drawn int) *rule {
	if s.plan.Shape == Days {
		return &rules[len(rules)-4+drawn%4] // those of fixed hours or days
	}
	return &rules[drawn%len(rules)]
}
