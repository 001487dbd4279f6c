package simulate

import (
	"fmt"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// grain is what instants may differ by: Redis has them in µs.
const grain = 2 * time.Microsecond

// version is what a call has written under an id.
type version struct {
	id, key, payload string
	due              time.Time
	instant, made    time.Time // for which, and when, it was scheduled
	ripe             time.Time // its due, if that had come before the clock of Redis stepped
	handled          bool      // by a handler that has succeeded
	missing          bool      // Redis has lost its payload
	claimed          bool      // at least once
	first            time.Time // of a debounced timer: when it was first scheduled

	charges map[string]time.Time // when all tokens are back of the buckets that its claim took one from

	failures failures

	token  exchange.Token // of its lease
	run    string         // the exchange that claimed it
	lapsed exchange.Token // of a lease that had expired before the clock stepped, or whose record is lost
	until  time.Time      // when the lease expires
}

// leased reports whether the version has a lease at an instant by the clock of Redis.
func (v *version) leased(now time.Time) bool { return v.token != "" && v.until.After(inMicros(now)) }

// inMicros is an instant by the clock of Redis, by which leases begin and expire.
func inMicros(t time.Time) time.Time { return t.Truncate(time.Microsecond) }

// expiry is when a lease expires that begins now. Redis has its expiry in µs.
func (s *sim) expiry(ttl time.Duration) time.Time {
	return inMicros(s.now()).Add(ttl.Round(time.Microsecond))
}

// judge knows what the topic has to have and to do, and checks it with every step.
type judge struct {
	sim       *sim
	payloads  int
	current   map[string]*version
	lost      map[string]*version            // that Redis has lost, but for their payloads
	ofKey     map[string]map[string]*version // those of current with a key, by key
	running   map[*version]bool              // that have leases, and some that had one
	dead      map[string][]*version          // the newest dead letter of each id
	leases    map[string]*version            // by id and token
	voided    map[string]bool                // leases that Redis has lost
	overtaken map[string]bool                // leases that existed when the clock of Redis stepped
	answered  map[string]uint64              // the last sequence of each stream
	marks     map[string]mark                // of ids that were scheduled with Once
	starts    *starts
	passed    map[string]map[string]int // of a key that waits: how many timers of other keys have started since its last one

	fixed   bool          // neither limits nor shards have changed
	tuned   bool          // limits have changed
	plain   bool          // the topic was never divided
	stalled bool          // a process has stood still
	eased   time.Time     // when what holds up all timers has ended, as a pause
	flow    exchange.Flow // the limits that operators want
	forgot  time.Time     // when old leases were forgotten
	peak    int           // the most timers since there were none
}

func newJudge(s *sim) *judge {
	j := &judge{
		sim: s, current: map[string]*version{}, lost: map[string]*version{}, ofKey: map[string]map[string]*version{}, running: map[*version]bool{}, dead: map[string][]*version{}, leases: map[string]*version{}, voided: map[string]bool{}, overtaken: map[string]bool{}, answered: map[string]uint64{},
		marks: map[string]mark{}, passed: map[string]map[string]int{}, fixed: true, plain: true, flow: s.plan.Settings.Flow,
	}
	j.starts = newStarts(s, s.plan.Settings.Flow, func() bool { return j.fixed })
	return j
}

func (j *judge) payload() []byte {
	j.payloads++
	return []byte("v" + strconv.Itoa(j.payloads))
}

func (j *judge) pending() int { return len(j.current) }
func (j *judge) stalls(*node) { j.stalled = true }

// put notes a timer that takes the place of the one with its id.
func (j *judge) put(v *version) {
	if len(j.current) == 0 {
		j.peak = 0
	}
	v.instant, v.made = v.due, j.sim.now()
	j.remove(v.id)
	delete(j.lost, v.id)
	j.current[v.id] = v
	j.byKey(v)
	j.peak = max(j.peak, len(j.current))
}

// byKey sorts a timer by its key.
func (j *judge) byKey(v *version) {
	if v.key == "" {
		return
	}
	if j.ofKey[v.key] == nil {
		j.ofKey[v.key] = map[string]*version{}
	}
	j.ofKey[v.key][v.id] = v
}

// remove notes that there is no timer with an id any more.
func (j *judge) remove(id string) {
	v := j.current[id]
	if v == nil {
		return
	}
	delete(j.current, id)
	delete(j.running, v)
	delete(j.passed, v.key)
	if delete(j.ofKey[v.key], id); len(j.ofKey[v.key]) == 0 {
		delete(j.ofKey, v.key)
	}
}

// removeAll notes that there are no timers any more.
func (j *judge) removeAll() {
	clear(j.current)
	clear(j.ofKey)
	clear(j.running)
	clear(j.passed)
}

// replaced notes a timer that is written without a policy.
func (j *judge) replaced(id, key, payload string, due time.Time) {
	if old := j.current[id]; old != nil && key == "" {
		key = old.key
	}
	j.put(&version{id: id, key: key, payload: payload, due: due})
	j.unsure(id)
}

func (j *judge) cancelled(id string, found wakebelltype.Presence) {
	v, want := j.current[id], wakebelltype.PresenceAbsent
	switch {
	case v != nil && v.missing && found == want: // it stays
		return
	case v != nil && v.leased(j.sim.now()):
		want = wakebelltype.PresenceRunning
	case v != nil:
		want = wakebelltype.PresencePending
	}
	if found != want && (found != wakebelltype.PresencePending || !v.vague(j.sim.now())) {
		j.sim.broken("answers", "cancel of %s: %v, expected %v", id, found, want)
	}
	j.remove(id)
}

func (j *judge) cancelledAll(n int) {
	if n != len(j.current) {
		j.sim.broken("answers", "cancel all: %d, expected %d", n, len(j.current))
	}
	j.removeAll()
}

func (j *judge) absent(id string) {
	if v := j.current[id]; v != nil && !v.missing {
		j.sim.broken("nothing lost", "%s is not found", id)
	}
}

func (j *judge) rescheduled(id string, due time.Time) {
	v := j.current[id]
	if v == nil {
		j.sim.broken("answers", "%s is rescheduled, and there is no timer", id)
	}
	j.put(&version{id: id, key: v.key, payload: v.payload, due: due})
	j.unsure(id) // the mark follows the timer, unless that was delivered before
}

func (j *judge) runNow(id string) {
	v := j.current[id]
	if v == nil {
		j.sim.broken("answers", "%s is run now, and there is no timer", id)
	}
	if !v.leased(j.sim.now()) && v.due.After(j.sim.now()) {
		v.due, v.instant, v.made = j.sim.now(), j.sim.now(), j.sim.now()
		j.unsure(id)
	}
}

// exchanged checks an exchange that Redis has carried out, or answered again.
func (j *judge) exchanged(r *exchange.Request, reply *exchange.Reply) {
	stream := r.Incarnation + "/" + strconv.Itoa(r.Stream)
	if j.answered[stream] == r.Sequence {
		return // nothing was done
	}
	j.answered[stream] = r.Sequence
	refused := map[int]bool{}
	for _, f := range reply.Refused {
		refused[f.Index] = true
	}
	for i, settled := range r.Settle {
		j.settled(settled, refused[i])
	}
	for i, held := range r.Extend {
		j.extended(held, refused[len(r.Settle)+i], reply.Extended, r.LeaseTTL)
	}
	for _, d := range reply.DeadLettered {
		if d.Index < 0 {
			j.died(d.ID)
		}
	}
	for i := range reply.Leases {
		j.claimed(r, &reply.Leases[i])
	}
}

// of returns the version that has a lease; nil: none has.
func (j *judge) of(id string, token exchange.Token) *version {
	v := j.leases[id+" "+string(token)]
	if v == nil || v != j.current[id] || v.token != token {
		return nil
	}
	return v
}

func (j *judge) settled(s exchange.Settlement, refused bool) {
	v := j.of(s.ID, s.Token)
	switch {
	case v == nil && !refused:
		j.sim.broken("fence", "a verdict of %s counts, and its lease is void", s.ID)
	case v == nil:
		return
	case refused && v.counts(j.sim.now()):
		j.sim.broken("acks count", "a verdict of %s is refused, and its lease is valid", s.ID)
	case refused:
		return
	}
	v.token = ""
	switch s.Verdict {
	case exchange.Ack:
		if !v.handled {
			j.sim.broken("acks", "%s is acked, and no handler has succeeded", s.ID)
		}
		j.remove(s.ID)
	case exchange.Nack:
		v.failures.nack(&s)
		v.due, v.first = j.sim.now().Add(s.Delay), time.Time{} // it was delivered: a debounce begins anew
	case exchange.DeadLetter, exchange.Fail:
		j.died(s.ID)
	case exchange.Release:
		j.starts.released(v)
	}
}

func (j *judge) died(id string) {
	j.dead[id] = append(j.dead[id], j.current[id])
	j.remove(id)
}

func (j *judge) extended(h exchange.Held, refused bool, token exchange.Token, ttl time.Duration) {
	v := j.of(h.ID, h.Token)
	switch {
	case v == nil && !refused:
		j.sim.broken("fence", "the lease of %s is extended, and it is void", h.ID)
	case v != nil && refused && v.counts(j.sim.now()):
		j.sim.broken("acks count", "the lease of %s is not extended, and it is valid", h.ID)
	case v != nil && !refused:
		v.token, v.until = token, j.sim.expiry(ttl)
		j.leased(v)
	}
}

func (j *judge) claimed(r *exchange.Request, l *exchange.Lease) {
	v, now := j.current[l.ID], j.sim.now()
	switch {
	case v == nil:
		j.sim.broken("fence", "%s is delivered, and there is no timer", l.ID)
	case v.missing:
		j.sim.broken("payloads", "%s is delivered with %s, and Redis has lost its payload", l.ID, l.Payload)
	case string(l.Payload) != v.payload:
		j.sim.broken("payloads", "%s is delivered with %s, expected %s", l.ID, l.Payload, v.payload)
	case v.early(now.Add(r.Ahead)):
		j.sim.broken("never early", "%s is claimed %v early", l.ID, v.due.Sub(now))
	case v.leased(now.Add(r.Ahead)) || v.leased(now) && !v.vague(now):
		j.sim.broken("exclusion", "%s is claimed, and its lease has not expired", l.ID)
	}
	j.counts(v, l)
	j.restInOrder(v)
	v.run = fmt.Sprint(r.Incarnation, "/", r.Stream, "/", r.Sequence)
	j.limits(v)
	j.inOrder(v)
	j.share(v)
	j.soon(v)
	j.starts.claimed(v)
	v.claimed = true
	v.token, v.until = l.Token, j.sim.expiry(r.LeaseTTL)
	j.leased(v)
}

// manyLeases are so many that those are forgotten which have expired an hour ago: no process
// stands still for so long.
const manyLeases = 20_000

// leased notes a lease.
func (j *judge) leased(v *version) {
	j.leases[v.id+" "+string(v.token)] = v
	j.running[v] = true
	if len(j.leases) < manyLeases || j.sim.now().Sub(j.forgot) < time.Hour {
		return
	}
	j.forgot = j.sim.now()
	for name, v := range j.leases {
		if j.sim.now().Sub(v.until) > time.Hour {
			delete(j.leases, name)
		}
	}
}

func (j *judge) succeeded(l *leasing.Lease) {
	if v := j.leases[l.ID+" "+string(l.Token)]; v != nil {
		v.handled = true
	}
}
