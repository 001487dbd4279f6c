package simulate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/timers"
)

// drain is for how long handlers may run on when a node is stopped.
const drain = 5 * time.Second

// deploy stops the nodes one after the other, and starts them again: in half of all cases with
// other limits.
func (s *sim) deploy(o Op) {
	if o.B%2 == 1 {
		s.flow = s.plan.Shape.settings()[o.A%len(settings)].Flow
		s.judge.retuned(s.limits())
	}
	wait := time.Duration(0)
	for _, n := range s.nodes {
		s.after(wait, n.stop)
		wait += time.Duration(o.B) * 50 * time.Millisecond
	}
}

// limits are those that hold: nodes have begun with some, and operators set others.
func (s *sim) limits() exchange.Flow {
	of := leasing.Settings{Flow: s.flow}
	return flowOf(tuning.Override(of.Public(), s.retuned))
}

// stop drains the node, which starts again when nothing is left to do.
func (n *node) stop() {
	if n.down || n.leaving {
		return
	}
	n.sim.note("%s stops", n.name)
	n.leaving = true
	if len(n.all()) == 0 {
		n.stopped()
		return
	}
	for _, p := range n.all() {
		p.event(func(c *leasing.Core) { c.Drain(time.Now(), drain) })
	}
}

// Drained is the end of a poller's drain.
func (p *poller) Drained([]string, int) {
	p.drained = true
	p.later(0, p.stopped)
}

// stopped starts the node again as soon as all its pollers are drained.
func (n *node) stopped() {
	for _, p := range n.all() {
		if !p.drained {
			return
		}
	}
	n.sim.note("%s has stopped", n.name)
	for _, p := range n.all() {
		p.end()
	}
	n.life++
	n.forget()
	n.start()
}

// restart starts the process, if it is down or stalled.
func (n *node) restart() {
	if n.down {
		n.start()
	}
}

// stall has the process stand still for a while.
func (n *node) stall(d time.Duration) {
	n.sim.note("%s stalls for %v", n.name, d)
	n.stalled = time.Now().Add(d)
	n.sim.judge.stalls(n)
}

// settle ends what processes that have died have left of changes of the layout.
func (n *node) settle(ctx context.Context) error {
	if _, err := n.store.Settle(ctx, topic); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	if _, err := n.store.DeliverAbandoned(ctx, topic); err != nil {
		return fmt.Errorf("deliver: %w", err)
	}
	return nil
}

// immortal are the commands of a process that does not die.
const immortal = math.MaxInt32

var errDied = errors.New("the process has died")

// life is a client hook that lets a process die. It counts the commands on each key, and fails
// those after the last one: commands on several keys run at once, in an order that differs.
type life struct {
	mu    sync.Mutex
	left  int // commands on each key
	made  map[string]int
	alike bool // all commands count as ones on the same key: none run at once
}

// mortal returns a client of a process that may die, whose commands come one after the other.
func (s *sim) mortal() (*redis.Client, *life) {
	options := *s.options
	rdb, its := redis.NewClient(&options), &life{alike: true}
	its.begin(immortal)
	rdb.AddHook(its)
	s.atEnd = append(s.atEnd, func() { _ = rdb.Close() })
	return rdb, its
}

// begin begins the life of another process.
func (l *life) begin(commands int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.made = commands, map[string]int{}
}

// DialHook implements redis.Hook.
func (l *life) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (l *life) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := l.spend(cmd); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (l *life) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := l.spend(cmds[len(cmds)/2]); err != nil { // the first one may be MULTI
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
			return err
		}
		return next(ctx, cmds)
	}
}

func (l *life) spend(cmd redis.Cmder) error {
	at := 1
	if cmd.Name() == "evalsha" || cmd.Name() == "eval" {
		at = 3
	}
	key := cmd.Name()
	if args := cmd.Args(); len(args) > at {
		key = fmt.Sprint(args[at])
	}
	if l.alike {
		key = ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made[key]++; l.made[key] > l.left {
		return errDied
	}
	return nil
}

// mortal reports whether the process may die.
func (l *life) mortal() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left < immortal
}

// peer is a program in Python on the same topic: it writes the keys itself, and knows neither
// keys of timers nor shards.
type peer struct{ *sim }

// finds reports whether the peer and the nodes mean the same topic.
func (p *peer) finds() bool { return p.judge.plain }

// schedule writes a timer, as its publish does. It gives no key, and an id that keeps one is
// left to Wakebell's clients unless its timer is there.
func (p *peer) schedule(o Op) {
	id := name(o.ID)
	if old := p.judge.current[id]; !p.finds() || keyOf(o.ID) != "" && (old == nil || old.key == "") {
		return
	}
	at, payload := time.Now().Add(p.delay(o.A)).Truncate(time.Microsecond), p.judge.payload()
	k, pipe := p.keys(), p.rdb.TxPipeline()
	pipe.ZAdd(p.ctx, k.Timeline, redis.Z{Score: seconds(at), Member: id})
	pipe.HSet(p.ctx, k.Payloads, id, payload)
	p.must(pipe.Exec(p.ctx))
	p.judge.replaced(id, "", string(payload), at)
}

func (p *peer) cancel(o Op) {
	if p.finds() {
		p.remove(name(o.ID))
	}
}

// handle handles the first timer that is due.
func (p *peer) handle() {
	if !p.finds() {
		return
	}
	due, err := p.rdb.ZRangeArgs(p.ctx, redis.ZRangeArgs{
		Key: p.keys().Timeline, ByScore: true, Start: "-inf", Stop: strconv.FormatFloat(seconds(time.Now()), 'f', 6, 64), Count: 1,
	}).Result()
	if err != nil {
		p.broken("errors", "a peer reads the timeline: %v", err)
	}
	for _, id := range due {
		p.remove(id)
	}
}

func (p *peer) remove(id string) {
	k, pipe := p.keys(), p.rdb.TxPipeline()
	pipe.ZRem(p.ctx, k.Timeline, id)
	pipe.HDel(p.ctx, k.Payloads, id)
	p.must(pipe.Exec(p.ctx))
	p.judge.remove(id)
}

func (p *peer) keys() timers.TopicKeys { return p.clients[0].store.Timers().Keys().Of(topic) }

func (p *peer) must(_ []redis.Cmder, err error) {
	if err != nil {
		p.broken("errors", "a peer: %v", err)
	}
}

func seconds(at time.Time) float64 { return float64(at.UnixMicro()) / 1e6 }
