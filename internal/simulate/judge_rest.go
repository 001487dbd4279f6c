package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// atRest checks that everything was delivered, and that nothing is left in Redis but what has
// an end or an owner.
func (j *judge) atRest() {
	for id, v := range j.current {
		j.sim.broken("delivered", "%s waits for ever, due %v ago", id, j.sim.now().Sub(v.due))
	}
	if n := j.sim.messages.left(); n > 0 {
		j.sim.broken("delivered", "%d messages wait for ever", n)
	}
	if n := j.sim.turns.waiting(); n > 0 {
		j.sim.broken("delivered", "%d tickets wait for their turns for ever", n)
	}
	for id, v := range j.sim.journey.all() {
		j.sim.broken("delivered", "%s waits for ever in a topic that moves, due %v ago", id, j.sim.now().Sub(v.due))
	}
	j.sim.workflow.atRest()
	j.sim.minder.atRest()
	j.nothingLeft(j.sim.rdb)
	if j.sim.journey != nil {
		j.nothingLeft(j.sim.journey.rdb)
	}
}

// nothingLeft checks that a Redis has no key without an end or an owner.
func (j *judge) nothingLeft(rdb *redis.Client) {
	found, err := rdb.Keys(j.sim.ctx, "*").Result()
	if err != nil {
		j.sim.broken("errors", "keys: %v", err)
	}
	var left []string
	for _, key := range found {
		if !j.mayStay(rdb, key) {
			fields, _ := rdb.HGetAll(j.sim.ctx, key).Result() // none of another type
			left = append(left, fmt.Sprintf("%s %q", key, fields))
		}
	}
	if len(left) > 0 {
		j.sim.broken("nothing left", "keys are left: %s", strings.Join(left, ", "))
	}
}

// mayStay reports whether a key may be there when there are no timers: it expires, or it
// belongs to the topic itself.
func (j *judge) mayStay(rdb *redis.Client, key string) bool {
	for _, prefix := range []string{"timers_topics", "timers_shards", "timers_control:", "timers_dead:", "timers_counts:", "timers_queues", "q::dlq", "q::wakebell:places", "q::wakebell:records", "q::processing:lease_token_counter", "{gates}:mark"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	if strings.HasPrefix(key, "timers_exchange:") && strings.HasSuffix(key, ":layout") {
		return true
	}
	if strings.HasPrefix(key, "timers_leases:") { // its field '' is no lease
		fields, err := rdb.HKeys(j.sim.ctx, key).Result()
		return err == nil && len(fields) == 1 && fields[0] == ""
	}
	ttl, err := rdb.PTTL(j.sim.ctx, key).Result()
	return err == nil && ttl > 0
}

// letters returns how many dead letters there are.
func (j *judge) letters() (n int) {
	for _, of := range j.dead {
		n += len(of)
	}
	return n
}

// redriven notes that the oldest dead letter of an id is a timer again, of those with a payload.
func (j *judge) redriven(id string, overwrote bool) {
	letters := j.dead[id]
	whole := slices.IndexFunc(letters, func(v *version) bool { return !v.missing })
	if whole < 0 || (j.current[id] != nil) != overwrote {
		j.sim.broken("answers", "%s is redriven (over a timer: %t), and that cannot be", id, overwrote)
	}
	first := letters[whole]
	j.dead[id] = slices.Delete(slices.Clone(letters), whole, whole+1)
	j.put(&version{id: id, key: first.key, payload: first.payload, due: j.sim.now()})
}

// skipped notes that a dead letter stays.
func (j *judge) skipped(id string) {
	broken := func(v *version) bool { return v.missing }
	if len(j.dead[id]) == 0 || j.current[id] == nil && !slices.ContainsFunc(j.dead[id], broken) {
		j.sim.broken("answers", "the dead letter of %s is not redriven, and nothing is in its way", id)
	}
}

// forgotten notes that the topic has neither timers nor settings.
func (j *judge) forgotten() {
	j.removeAll()
	clear(j.dead)
	j.sim.retuned = wakebelltype.Settings{}
	j.retuned(j.sim.limits())
}

// deadDeleted notes that all dead letters were deleted.
func (j *judge) deadDeleted(n int) {
	if want := j.letters(); n != want {
		j.sim.broken("answers", "%d dead letters are deleted, expected %d", n, want)
	}
	clear(j.dead)
}

// soonest is how long a timer that may run waits at most while nothing goes wrong. It is less
// than the interval of sweeps, so that these do not hide what is wrong.
const soonest = 20 * time.Second

// swept is in how much time a node has looked at all that the topic has.
const swept = 2 * time.Minute

// soon checks that nothing has held up a timer: each that waits has a reason that ends.
func (j *judge) soon(v *version) {
	if j.sim.resting.IsZero() || j.sim.clients[0].resharding() {
		return
	}
	ready := v.due
	for _, at := range []time.Time{j.sim.resting, j.eased, v.made, v.until} {
		if at.After(ready) {
			ready = at
		}
	}
	late := j.sim.now().Sub(ready)
	j.sim.result.Latest = max(j.sim.result.Latest, late)
	most := soonest
	switch j.sim.plan.Shape {
	case Days: // a peer sends no hints
		most += j.sim.plan.Settings.MaxPollingInterval
	case Many: // they wait for handlers, or for others of their keys
		most += time.Duration(j.peak) * 100 * time.Millisecond
	}
	if j.sim.plan.Damages { // a sweep finds what waits for a timer that Redis has lost
		most += swept
	}
	if j.flow.RateLimit > 0 || j.flow.KeyRateLimit > 0 { // the lowest rate is one a second
		most += time.Duration(j.peak) * time.Second
	}
	if late > most {
		j.sim.broken("delivered soon", "%s could have been delivered %v ago", v.id, late)
	}
}

// dueAt reports whether a timer that waits may be due at an instant: its own, or a later one
// if it waits for a token of its key.
func (j *judge) dueAt(v *version, at time.Time) bool {
	if at.Sub(v.due).Abs() <= grain {
		return true
	}
	return at.After(v.due) && v.key != "" && (j.tuned || j.flow.KeyRateLimit > 0)
}

// retuned notes that other limits hold.
func (j *judge) retuned(flow exchange.Flow) {
	j.fixed, j.tuned, j.flow, j.eased = false, true, flow, j.sim.now()
}

// resharded notes that timers move, and ease that something ends which holds them up.
func (j *judge) resharded() { j.fixed, j.plain = false, false }
func (j *judge) ease()      { j.eased = j.sim.now() }

// mark is what is known of an id that was scheduled with Once.
type mark struct {
	made  bool
	until time.Time // it holds until then at least; zero: that is not known
}

// scheduled notes the outcome of a schedule.
func (j *judge) scheduled(e *timers.Entry, done wakebelltype.Scheduled) {
	old := j.current[e.ID]
	switch done.Outcome {
	case wakebelltype.OutcomeCreated, wakebelltype.OutcomeReplaced, wakebelltype.OutcomeSuperseded, wakebelltype.OutcomeMoved:
		j.written(e, done, old)
	case wakebelltype.OutcomeAlreadyDone:
		if old != nil || e.Once == 0 || !j.marks[e.ID].made {
			j.sim.broken("answers", "schedule of %s: %v, and nothing was delivered once", e.ID, done.Outcome)
		}
	default:
		if old == nil {
			j.sim.broken("answers", "schedule of %s: %v, and there is no timer", e.ID, done.Outcome)
		}
	}
}

// written notes a schedule that was written.
func (j *judge) written(e *timers.Entry, done wakebelltype.Scheduled, old *version) {
	now := j.sim.now()
	if want := outcomeOf(e, old, now, done.Outcome == wakebelltype.OutcomeSuperseded); done.Outcome != want {
		j.sim.broken("answers", "schedule of %s: %v, expected %v", e.ID, done.Outcome, want)
	}
	if m := j.marks[e.ID]; old == nil && e.Once > 0 && m.until.After(now) {
		j.sim.broken("once", "%s is scheduled once more, and its mark holds for %v", e.ID, m.until.Sub(now))
	}
	if e.Policy == wakebelltype.PolicyEarliest && old != nil && !old.missing && !old.leased(now) && done.Due.After(old.due.Add(grain)) {
		j.sim.broken("earliest", "%s is made later, by %v", e.ID, done.Due.Sub(old.due))
	}
	if want := now.Add(e.In); e.In > 0 && done.Due.After(want.Add(grain)) || e.In > 0 && e.MaxDelay == 0 && done.Due.Before(want.Add(-grain)) {
		j.sim.broken("answers", "%s is due in %v, expected %v", e.ID, done.Due.Sub(now), e.In)
	}
	v := &version{id: e.ID, key: e.Key, payload: string(e.Payload), due: done.Due}
	if old != nil && e.Key == "" {
		v.key = old.key
	}
	if e.Policy == wakebelltype.PolicyDebounce {
		v.first = now
		if done.Outcome == wakebelltype.OutcomeMoved && !old.first.IsZero() {
			v.first = old.first
		}
		if most := v.first.Add(e.MaxDelay + grain); e.MaxDelay > 0 && done.Due.After(most) {
			j.sim.broken("debounce", "%s is due %v after its bound", e.ID, done.Due.Sub(most))
		}
	}
	j.put(v)
	if e.Once == 0 {
		j.unsure(e.ID)
		return
	}
	from := now
	if done.Due.After(now) {
		from = done.Due
	}
	j.marks[e.ID] = mark{made: true, until: from.Add(e.Once - grain - keysAge)}
}

// unsure forgets until when the mark of an id holds.
func (j *judge) unsure(id string) { j.marks[id] = mark{made: j.marks[id].made} }

// outcomeOf returns the outcome of a schedule that is written over a timer, nil if none. Whether it has
// superseded a lease that is vague, only Redis knows.
func outcomeOf(e *timers.Entry, old *version, now time.Time, superseded bool) wakebelltype.Outcome {
	switch {
	case old == nil, old.missing:
		return wakebelltype.OutcomeCreated
	case old.leased(now) && (!old.vague(now) || superseded):
		return wakebelltype.OutcomeSuperseded
	case e.Policy == wakebelltype.PolicyDebounce:
		return wakebelltype.OutcomeMoved
	default:
		return wakebelltype.OutcomeReplaced
	}
}
