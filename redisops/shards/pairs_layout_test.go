package shards

import (
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

func z(at time.Time, id string) redis.Z {
	return redis.Z{Score: float64(at.UnixMicro()) / 1e6, Member: id}
}

// tunings are the settings that an operator gives a topic.
var tunings = []wakebelltype.Settings{
	{},
	{PerKey: 1},
	{PerKey: 1},
	{PerKey: 2},
	{KeyRateLimit: 1, KeyRatePer: 10 * time.Second, KeyRateBurst: 1},
	{KeyRateLimit: 2, KeyRatePer: 10 * time.Second, KeyRateBurst: 2, PerKey: 1},
	{RateLimit: 1, RatePer: 5 * time.Second, RateBurst: 2},
	{MaxInFlight: 3},
	{MaxInFlight: 4, PerKey: 1},
	{RateLimit: 10, RatePer: 10 * time.Second, RateBurst: 3, KeyRateLimit: 1, KeyRatePer: time.Second, KeyRateBurst: 1},
}

func (w *world) retune(st step) {
	s := st.site(w)
	set := tunings[st.b%len(tunings)]
	control, err := st.client(s).Retune(w.ctx, modelTopic, set)
	if w.must(err, "retune") {
		w.note("  %+v", flowOf(set))
		s.control = control
	}
	if st.flag {
		w.followAll(s)
	}
}

// followAll lets the nodes of a site follow a change, as a hint makes them.
func (w *world) followAll(s *site) {
	for _, n := range s.nodes {
		if n.alive {
			w.follow(n)
		}
	}
}

func (w *world) pause(st step) {
	s := st.site(w)
	p := wakebelltype.Pause{By: "operator"}
	if st.flag { // the end goes with the pause
		p.For = 1000 * time.Hour
	}
	control, err := st.client(s).PauseUntil(w.ctx, modelTopic, p)
	if w.must(err, "pause") {
		s.control = control
	}
	w.followAll(s)
}

func (w *world) resume(st step) {
	s := st.site(w)
	control, err := st.client(s).Resume(w.ctx, modelTopic)
	if w.must(err, "resume") {
		s.control = control
	}
	w.followAll(s)
}

func (w *world) divide(st step) {
	s := st.site(w)
	l, err := st.client(s).Divide(w.ctx, modelTopic, 1+st.b%mostShards)
	if w.must(err, "divide") {
		w.note("  %s", l.Text())
		w.pass(Fresh) // in which clients may write where the topic was
	}
}

// reshard makes the next step of a resharding.
func (w *world) reshard(st step) {
	s := st.site(w)
	c := st.client(s)
	if s.to == 0 {
		s.to = 1 + st.b%mostShards
	}
	var p Progress
	wait, err := c.ReshardStep(w.ctx, modelTopic, s.to, &p)
	if !w.must(err, "reshard") {
		s.to = 0
		return
	}
	w.note("  to %d: moved %d, left %d, %s", s.to, p.Moved, p.Left, p.Layout.Text())
	if p.Done {
		s.to = 0
	}
	if st.flag {
		w.pass(wait)
	}
}

// moves returns the layout of a topic, and whether its timers move.
func (w *world) moves(s *site) (sharding.Layout, bool) {
	l, _, err := s.clients[0].layouts.Stored(w.ctx, modelTopic)
	w.must(err, "layout")
	return l, l.Moves()
}

// takeOnly takes timers into an outbox, by a process that ends then.
func (w *world) takeOnly(st step) {
	s := st.site(w)
	l, moves := w.moves(s)
	if !moves || !w.settledMap(s, l) {
		return
	}
	names := sharding.Names(modelTopic, l.From)
	_, err := st.client(s).toShards(modelTopic, l).take(w.ctx, names[st.b%len(names)])
	w.must(err, "take")
}

// settledMap reports whether all clients know that timers move.
func (w *world) settledMap(s *site, l sharding.Layout) bool {
	now, err := s.clients[0].now(w.ctx)
	w.must(err, "time")
	return now.Sub(time.UnixMilli(l.Since)) >= settleAfter
}

// arriveOnly stores some parts of the batches of an outbox, by a process that ends then.
func (w *world) arriveOnly(st step) {
	s := st.site(w)
	l, moves := w.moves(s)
	if !moves {
		return
	}
	c := st.client(s)
	for _, from := range sharding.Names(modelTopic, l.From) {
		batches, err := c.outbox(w.ctx, from)
		w.must(err, "outbox")
		for token, text := range batches {
			batch, err := readBatch(text)
			w.must(err, "batch")
			parts, _ := c.spread(modelTopic, l, batch)
			for name, part := range parts {
				if len(name)%2 == st.b%2 {
					_, err := c.toShards(modelTopic, l).arrive(w.ctx, batch, name, token+" "+from, part)
					w.must(err, "arrive")
				}
			}
		}
	}
}

// moveStep makes a step of a move from the first Redis to the second.
func (w *world) moveStep(st step) {
	if w.move == nil && !w.beginMove() {
		return
	}
	var p MoveProgress
	_, err := w.move.next(w.ctx, &p)
	if p.Done {
		w.copyMarks()
	}
	if !w.must(err, "move") || p.Done || st.flag {
		w.move = nil // its process ends
	}
	w.note("  moved %d, left %d", p.Moved, p.Left)
}

func (w *world) beginMove() bool {
	target := w.sites[1].clients[0]
	l, _, err := target.layouts.Stored(w.ctx, modelTopic)
	w.must(err, "layout")
	if l.Count() > 1 {
		for id, t := range w.sites[0].timers {
			if t.key != modelKey(id) { // it would be another timer than the one with its key there
				return false
			}
		}
	}
	m, err := w.sites[0].clients[0].mover(w.ctx, modelTopic, target, modelTopic, wakebelltype.MoveOptions{All: true})
	if !w.must(err, "begin to move") {
		return false
	}
	w.move, w.moved = m, true
	if divided, _, _ := target.layouts.Stored(w.ctx, modelTopic); divided.Count() != l.Count() {
		w.pass(Fresh) // in which clients may look where the topic was
	}
	w.copyMarks()
	if control, err := target.Control(w.ctx, modelTopic); err == nil {
		w.sites[1].control = control
	}
	return true
}

// copyMarks notes that the marks of Once are in the target of a move too.
func (w *world) copyMarks() {
	for id, at := range w.sites[0].marks {
		if w.sites[1].marks[id].IsZero() {
			w.sites[1].marks[id] = at
		}
	}
}

// moveTakeOnly takes timers out of the first Redis, by a process that ends then.
func (w *world) moveTakeOnly(st step) {
	if w.move == nil && !w.beginMove() {
		return
	}
	name := w.move.names[st.b%len(w.move.names)]
	if w.must(w.move.unchanged(w.ctx), "go on with the layouts") {
		err := w.move.deliverAll(w.ctx, name)
		w.check()
		if err == nil {
			_, err = w.move.take(w.ctx, name)
		}
		if !errors.Is(err, scripts.ErrStaleLayout) { // a move reads it again then
			w.must(err, "take")
		}
	}
	w.move = nil
}

// abortMove ends a move; what has arrived and was not noted is in both Redis then.
func (w *world) abortMove(step) {
	s := w.sites[0]
	_, err := s.clients[0].AbortMove(w.ctx, modelTopic)
	w.move = nil
	w.must(err, "abort the move")
}

func (w *world) keep(st step) {
	s := st.site(w)
	if !w.moved {
		w.snapshot(s)
	}
}

// fail over to a replica that lags behind.
func (w *world) failOver(st step) {
	s := st.site(w)
	if s.snapshot == nil || w.moved {
		s.snapshot = nil
		return
	}
	w.failover(s)
	w.calls = nil // their answers may be lost
	w.pass(time.Second)
}

// passes are for how long nothing happens.
var passes = []time.Duration{10 * time.Millisecond, time.Second, 6 * time.Second, 31 * time.Second, 3 * time.Minute, time.Hour}

func (w *world) wait(st step) { w.pass(passes[st.b%len(passes)]) }
