package simulate

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// parts are what Redis may lose of the topic, or have although no program wrote it: as after an eviction, a
// command by hand, or a partial restore.
var parts = []func(s *sim, names []string, o Op) string{
	loseRecord, losePayload, losePlace, addPlace, addPayload, addRecord, loseStates, loseMarks, loseControl, mistype,
}

// loseParts has Redis lose a part of the topic, or have one more.
func (s *sim) loseParts(o Op) {
	names, err := s.clients[0].store.Polled(s.ctx, topic)
	if err != nil {
		s.broken("errors", "polled: %v", err)
	}
	if what := parts[o.A%len(parts)](s, names, o); what != "" {
		s.note("lost: %s", what)
	}
}

// some returns a timer; nil: there is none that fits.
func (j *judge) some(o Op, fits func(*version) bool) *version {
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(j.current)), func(id string) bool { return !fits(j.current[id]) })
	if len(ids) == 0 {
		return nil
	}
	return j.current[ids[o.B%len(ids)]]
}

// losePart removes a part of a timer from the physical topic that has it, and reports whether one has.
func (s *sim) losePart(names []string, remove func(timers.TopicKeys) *redis.IntCmd) bool {
	for _, name := range names {
		n, err := remove(s.clients[0].store.Timers().Keys().Of(name)).Result()
		if err != nil {
			s.broken("errors", "lose a part of %s: %v", name, err)
		}
		if n > 0 {
			return true
		}
	}
	return false
}

func unleased(v *version) bool { return v.token == "" && !v.missing }

// loseRecord loses what Redis knows of the runs of a timer: it keeps its instant, or the end of its lease.
func loseRecord(s *sim, names []string, o Op) string {
	v := s.judge.some(o, func(v *version) bool { return v.claimed })
	if v == nil || !s.losePart(names, func(k timers.TopicKeys) *redis.IntCmd { return s.rdb.HDel(s.ctx, k.Leases, v.id) }) {
		return ""
	}
	v.lapsed = v.token // which is the score of the timer, and stays valid
	v.failures = failures{most: v.failures.most}
	return "the lease record of " + v.id
}

// losePayload loses the payload of a timer, which becomes a dead letter when it is due.
func losePayload(s *sim, names []string, o Op) string {
	v := s.judge.some(o, unleased)
	if v == nil || !s.losePart(names, func(k timers.TopicKeys) *redis.IntCmd { return s.rdb.HDel(s.ctx, k.Payloads, v.id) }) {
		return ""
	}
	v.payload, v.missing = "", true
	return "the payload of " + v.id
}

// losePlace loses a timer, unless a repair finds its payload before a sweep does.
func losePlace(s *sim, names []string, o Op) string {
	v := s.judge.some(o, unleased)
	if v == nil || !s.losePart(names, func(k timers.TopicKeys) *redis.IntCmd { return s.rdb.ZRem(s.ctx, k.Timeline, v.id) }) {
		return ""
	}
	s.judge.remove(v.id)
	s.judge.lost[v.id] = v
	return "the place of " + v.id
}

// addPlace adds a timer without a payload.
func addPlace(s *sim, names []string, o Op) string {
	v := &version{id: "added " + strconv.Itoa(s.result.Done), due: inMicros(s.now()).Add(s.delay(o.B)), missing: true}
	if err := s.rdb.ZAdd(s.ctx, s.clients[0].store.Timers().Keys().Of(names[0]).Timeline, redis.Z{Score: seconds(v.due), Member: v.id}).Err(); err != nil {
		s.broken("errors", "add a place: %v", err)
	}
	s.judge.put(v)
	return "all but the place of " + v.id
}

// addPayload adds a payload, which a repair restores as a timer.
func addPayload(s *sim, names []string, _ Op) string {
	id := s.add(s.clients[0].store.Timers().Keys().Of(names[0]).Payloads)
	s.judge.lost[id] = &version{payload: unknown}
	return "all but the payload of " + id
}

func addRecord(s *sim, names []string, _ Op) string {
	return "all but the record of " + s.add(s.clients[0].store.Timers().Keys().Of(names[0]).Leases)
}

const unknown = "?"

// add adds a field to a hash.
func (s *sim) add(key string) (id string) {
	id = "added " + strconv.Itoa(s.result.Done)
	if err := s.rdb.HSet(s.ctx, key, id, unknown).Err(); err != nil {
		s.broken("errors", "add to %s: %v", key, err)
	}
	return id
}

// loseStates loses a state of limits: they may not hold until it is there again, and hold up no timer.
func loseStates(s *sim, names []string, o Op) string {
	k := s.clients[0].store.Timers().Keys().Of(names[o.B%len(names)])
	key := []string{k.KeyOrder, k.KeyStates, k.KeyRates, k.Flow, k.KeyTurns, k.Hint}[o.A%6]
	if n, err := s.rdb.Del(s.ctx, key).Result(); err != nil || n == 0 {
		return ""
	}
	s.judge.fixed, s.judge.tuned = false, true
	return key
}

// loseMarks loses the marks of timers that were scheduled with Once.
func loseMarks(s *sim, _ []string, _ Op) string {
	lost := s.loseKeys("timers_once:*")
	if lost != "" {
		for id := range s.judge.marks {
			s.judge.unsure(id)
		}
	}
	return lost
}

// loseControl loses what operators have set.
func loseControl(s *sim, _ []string, _ Op) string {
	if n, err := s.rdb.Del(s.ctx, s.clients[0].store.Timers().Keys().Of(topic).Control).Result(); err != nil || n == 0 {
		return ""
	}
	s.retuned = wakebelltype.Settings{}
	s.judge.retuned(s.limits())
	return "what operators have set"
}

// Keys of the queue, as docs/keys.md names them.
const (
	queueDeadlines = "q::processing:lease_deadlines"
	queueTokens    = "q::processing:lease_tokens"
	queueCounter   = "q::processing:lease_token_counter"
	queueCounts    = "q::processing:delivery_counts"
)

// lose has Redis lose a part of the queue.
func (m *messages) lose(o Op) {
	if m == nil {
		return
	}
	s, what := m.sim, ""
	switch o.A % 6 {
	case 0:
		what = m.losePart(o, s.rdb.ZRem, queueDeadlines, func(*message) {}) // a repair gives it another one
	case 1:
		what = m.losePart(o, func(ctx context.Context, key string, stored ...any) *redis.IntCmd {
			return s.rdb.HDel(ctx, key, stored[0].(string))
		}, queueTokens, func(of *message) { of.token = "" })
	case 2:
		what = s.loseKeys(queueCounts)
	case 3:
		what = s.loseKeys(queueCounter)
	case 4:
		what = s.loseKeys("q::deduplication::*")
		for key := range m.keys {
			m.vague[key] = true
		}
	default:
		what = s.loseKeys("q::wakebell:published:*")
		for payload, a := range m.known {
			m.known[payload] = answer{id: a.id}
		}
	}
	if what != "" {
		s.note("lost: %s", what)
	}
}

// losePart loses what a key has of a message that is held, unless its token is lost already: without
// both it is as one that is delivered at most once.
func (m *messages) losePart(o Op, remove func(ctx context.Context, key string, stored ...any) *redis.IntCmd, key string, lost func(*message)) string {
	s := m.sim
	held, err := s.rdb.ZRange(s.ctx, queueDeadlines, 0, -1).Result()
	if err != nil || len(held) == 0 {
		return ""
	}
	stored := held[o.B%len(held)]
	if !s.rdb.HExists(s.ctx, queueTokens, stored).Val() {
		return ""
	}
	if n, err := remove(s.ctx, key, stored).Result(); err != nil || n == 0 {
		s.broken("errors", "lose a part of a message: %d, %v", n, err)
	}
	for id, of := range m.waiting {
		if strings.Contains(stored, id) {
			lost(of)
		}
	}
	return key + " of " + stored
}

// loseKeys loses the keys of a pattern.
func (s *sim) loseKeys(pattern string) string {
	found, err := s.rdb.Keys(s.ctx, pattern).Result()
	if err != nil || len(found) == 0 {
		return ""
	}
	if err := s.rdb.Del(s.ctx, found...).Err(); err != nil {
		s.broken("errors", "lose %s: %v", pattern, err)
	}
	return pattern
}

// mistype gives a key another type for a while, as another program does. What meets it is refused, and
// has no effect.
func mistype(s *sim, names []string, o Op) string {
	if s.outage.mend != nil || s.clients[0].resharding() {
		return ""
	}
	k := s.clients[0].store.Timers().Keys().Of(names[o.B%len(names)])
	key := []string{k.Timeline, k.Payloads, k.Leases, k.TimerKeys, k.KeyOrder, k.KeyStates, k.KeyRates, k.Flow, k.Hint, k.Dead, k.Counts}[o.B%11]
	aside := key + " aside"
	if s.rdb.Rename(s.ctx, key, aside).Err() != nil { // there is no such key
		return ""
	}
	if err := s.rdb.RPush(s.ctx, key, unknown).Err(); err != nil {
		s.broken("errors", "mistype %s: %v", key, err)
	}
	lasts := time.Duration(1+o.A) * 100 * time.Millisecond
	s.outage.mended = time.Now().Add(lasts)
	s.outage.mend = func() {
		s.note("%s has its type again", key)
		s.outage.mend = nil
		if err := s.rdb.Del(s.ctx, key).Err(); err != nil {
			s.broken("errors", "mend %s: %v", key, err)
		}
		s.rdb.Rename(s.ctx, aside, key) // it may have expired
	}
	at := s.outage.mended
	s.after(lasts, func() {
		if s.outage.mend != nil && s.outage.mended.Equal(at) {
			s.outage.mend()
		}
	})
	return "the type of " + key
}

// repaired notes what a repair has restored, and of which timers it has made dead letters.
func (j *judge) repaired(c *client) {
	for _, id := range slices.Sorted(maps.Keys(j.current)) {
		if j.current[id].missing {
			j.died(id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(j.lost)) {
		v := j.lost[id]
		t, err := c.store.Get(j.sim.ctx, topic, id)
		if delete(j.lost, id); err == nil && j.current[id] == nil {
			j.put(&version{id: id, key: t.Key, payload: v.payload, due: t.Due, failures: failures{most: v.failures.most}})
		}
	}
}

// sweeps is in how much time all is swept: nodes sweep what they find when they claim, after 20 peeks.
func (p *Plan) sweeps() time.Duration {
	if p.Damages {
		return max(30*p.Settings.MaxPollingInterval, 10*time.Minute)
	}
	return 10 * time.Minute
}

// withDamage has Redis lose parts of keys in a sixteenth of the plans.
func (p *Plan) withDamage() {
	if p.Seed%16 != 12 {
		return
	}
	p.addFaults(damages, 8, 6)
	p.Damages = true
}
