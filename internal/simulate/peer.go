package simulate

import (
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/timers"
)

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
