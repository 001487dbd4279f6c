package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
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

// redriven notes that the oldest dead letter of an id is a timer again.
func (j *judge) redriven(id string, overwrote bool) {
	letters := j.dead[id]
	if len(letters) == 0 || (j.current[id] != nil) != overwrote {
		j.sim.broken("answers", "%s is redriven (over a timer: %t), and that cannot be", id, overwrote)
	}
	first := letters[0]
	j.dead[id] = letters[1:]
	j.put(&version{id: id, key: first.key, payload: first.payload, due: j.sim.now()})
}

// skipped notes that a dead letter stays.
func (j *judge) skipped(id string) {
	if len(j.dead[id]) == 0 || j.current[id] == nil {
		j.sim.broken("answers", "the dead letter of %s is not redriven, and nothing is in its way", id)
	}
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
