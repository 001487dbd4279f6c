package recurring

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
)

// Firing is the change that a due entry is to undergo.
type Firing struct {
	Name string
	Raw  recur.Raw // the bytes on which the decision was made

	Meta, Ours []byte    // their new values
	Score      int64     // score of the next instant
	Due        time.Time // the entry does not fire before it; zero: at once

	// Last, if not empty, is the id of a timer of Topic. The entry fires only if
	// that timer is gone.
	Topic, Last string
	place       shards.Placed // of Topic, which the script reads
	apart       bool          // no script reads Topic beside the schedule; it was asked before
	waits       bool          // it had the timer then

	Runs []Run // none: only the entry changes

	// Once, if set, makes the entry fire once: a second call with the same key does
	// nothing and returns the Keep of the first. Such a firing must be the only one
	// of its call.
	Once *timers.Key
	Keep string
}

// Run is a timer or a Celery message.
type Run struct {
	Topic   string // full name
	ID      string
	Payload []byte
	At      time.Time

	Queue   string // key of the list of a Celery broker, instead of a topic
	Binding string // key of the set of its bindings
	Member  string // member of that set

	place shards.Placed // of Topic
}

// Outcome is the outcome of a firing.
type Outcome byte

// Outcomes of a firing.
const (
	Fired       Outcome = 'f'
	Changed     Outcome = 'c' // its bytes have changed; nothing was done
	Gone        Outcome = 'g' // the entry was deleted
	Early       Outcome = 'e' // the entry is not due by Redis's clock
	Overlapping Outcome = 'o' // the timer of the last run still exists
	Unreadable  Outcome = 'x' // its key holds another type
	Done        Outcome = 'd' // the entry was fired with the same key before, at FireReply.Now
)

// FireReply is the reply to a call of Fire.
type FireReply struct {
	Now      time.Time
	Lock     Lock
	Barred   bool              // another process holds the lock; nothing was done
	Outcomes []Outcome         // one per firing
	Found    map[int]recur.Raw // current bytes of firings with the outcome Changed, by index
	Kept     string            // Keep of the first call, for the outcome Done
}

// target is the destination of runs: keys of a script.
type target struct {
	kind byte
	keys [5]string
}

// Fire applies firings of one part in one atomic step, at most 500 and about 1 MiB of them
// in a call: see [FireBatch]. Dead is a lock to ignore. A token takes the lock.
func (b *Store) Fire(ctx context.Context, token string, dead Lock, firings []Firing) (reply FireReply, err error) {
	if len(firings) > 0 {
		b = b.of(firings[0].Name)
	}
	err = b.shards.Routed(ctx, topicsOf(firings), func() error {
		reply, err = b.fire(ctx, token, dead, firings)
		return err
	})
	return reply, err
}

// topicsOf returns the topics of the timers of firings.
func topicsOf(firings []Firing) (topics []string) {
	add := func(topic string) {
		if !slices.Contains(topics, topic) {
			topics = append(topics, topic)
		}
	}
	for i := range firings {
		if firings[i].Last != "" {
			add(firings[i].Topic)
		}
		for _, r := range firings[i].Runs {
			if r.Queue == "" {
				add(r.Topic)
			}
		}
	}
	return topics
}

// fire is Fire with the layouts that the map has.
func (b *Store) fire(ctx context.Context, token string, dead Lock, firings []Firing) (FireReply, error) {
	if err := b.placeRuns(ctx, firings); err != nil {
		return FireReply{}, fmt.Errorf("fire: %w", err)
	}
	var targets []target
	var fences []*timers.Fence
	var guards []scripts.Guard
	known := map[string]int{}
	number := func(r Run) int {
		key := "t" + r.place.Name
		if r.Queue != "" {
			key = "c" + r.Queue
		}
		if n, ok := known[key]; ok {
			return n
		}
		targets = append(targets, b.target(r))
		if r.Queue == "" {
			fences = append(fences, r.place.Fence)
			guards = append(guards, r.place.Fence.Guards(b.timers.Keys(), r.place.Name)...)
		}
		known[key] = len(targets)
		return len(targets)
	}
	numberBefore := func(name string) int {
		if _, ok := known["b"+name]; !ok && name != "" {
			k := b.timers.Keys().Of(name)
			targets = append(targets, target{'b', [...]string{k.Timeline, k.Taken(), k.Timeline, k.Taken(), k.Timeline}})
			known["b"+name] = len(targets)
		}
		return known["b"+name] // 0: none
	}
	args := make([]any, 4, 4+16*len(firings))
	entries := make([]string, len(firings))
	for i := range firings {
		f := &firings[i]
		entries[i] = b.entry(f.Name)
		due, id, last, before := "0", f.Last, 0, 0
		if !f.Due.IsZero() {
			due = scripts.ScoreText(f.Due)
		}
		switch {
		case f.apart && !f.waits:
			id = ""
		case !f.apart && id != "":
			last, before = number(Run{place: f.place}), numberBefore(f.place.Before)
		}
		args = append(args, entries[i], f.Raw.Definition, f.Raw.Meta, f.Raw.Ours, f.Meta, f.Ours, f.Score, due, last, id, before, len(f.Runs))
		for _, r := range f.Runs {
			id, at := r.ID, ""
			if r.Queue != "" {
				id = r.Member
			} else {
				at = scripts.ScoreText(r.At)
			}
			args = append(args, number(r), id, r.Payload, at)
		}
	}
	kinds := make([]byte, len(targets))
	keys := make([]string, 0, 2+len(target{}.keys)*len(targets)+len(entries))
	keys = append(keys, b.schedule(), b.lock())
	for i, t := range targets {
		kinds[i] = t.kind
		keys = append(keys, t.keys[:]...)
	}
	args[0], args[1], args[2], args[3] = token, dead.dead(), kinds, len(firings)
	keys = append(keys, entries...)
	script, once := fireScript, []any(nil)
	if len(firings) == 1 && firings[0].Once != nil {
		key := firings[0].Once
		script = onceScript
		once = []any{b.done(key), firings[0].Keep, key.Content(), key.Life(ctx, b.timers.Retry).Milliseconds()}
	}
	var list []any
	err := b.timers.Counted(ctx, func(counting bool) (err error) {
		for i, t := range targets {
			if first := 2 + i*len(t.keys); !counting {
				keys[first+counts] = t.keys[0]
			}
		}
		return b.timers.OrUnfenced(fences, func(fenced bool) (err error) {
			guards := guards
			if !fenced {
				guards = nil
			}
			keys, args := scripts.WithGuards(guards, keys, args)
			if once != nil {
				keys, args = append(keys, once[0].(string)), append(args, once[1:]...) //nolint:forcetypeassert // it was set above
			}
			list, err = b.timers.RunList(ctx, 3, script, keys, args...)
			return err
		})
	})
	if err != nil {
		return FireReply{}, fmt.Errorf("fire: %w", err)
	}
	reply, err := readFired(list, len(firings))
	if err == nil {
		b.register(ctx, firings, reply)
	}
	return reply, err
}

// placeRuns sets the shards of the timers of firings, and asks for those of last runs that the
// script cannot look for, because they are in another slot of a Cluster.
func (b *Store) placeRuns(ctx context.Context, firings []Firing) (err error) {
	for i := range firings {
		f := &firings[i]
		if f.apart = f.Last != "" && !b.Shares(ctx, f.Topic); f.apart {
			// Its outbox was sent, so a timer that is gone does not come back before the entry
			// changes, which the script sees.
			f.waits, err = b.shards.Exists(ctx, f.Topic, f.Last)
		} else if f.Last != "" {
			f.place, err = b.shards.Place(ctx, f.Topic, f.Last)
		}
		if err != nil {
			return err
		}
		for j := range f.Runs {
			r := &f.Runs[j]
			if r.Queue != "" {
				continue
			}
			if r.place, err = b.shards.Place(ctx, r.Topic, r.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// counts is the place of the counts among the keys of a target. The script does not
// count under the first of them.
const counts = 4

func (b *Store) target(r Run) target {
	if r.Queue != "" {
		return target{'c', [...]string{r.Queue, r.Binding, r.Queue, r.Binding, r.Queue}}
	}
	k := b.timers.Keys().Of(r.place.Name)
	return target{'t', [...]string{k.Timeline, k.Payloads, k.Leases, k.Hint, counts: k.Counts}}
}

func (b *Store) register(ctx context.Context, firings []Firing, reply FireReply) {
	for i, outcome := range reply.Outcomes {
		for _, r := range firings[i].Runs {
			if outcome == Fired && r.Queue == "" {
				b.timers.Remember(ctx, r.place.Name)
			}
		}
	}
}

func readFired(list []any, n int) (FireReply, error) {
	values, err := scripts.Texts(list)
	if err != nil {
		return FireReply{}, err
	}
	looked, err := readLocked(values)
	reply := FireReply{Now: looked.Now, Lock: looked.Lock, Barred: len(values) == 3, Found: map[int]recur.Raw{}}
	if err != nil || reply.Barred {
		return reply, err
	}
	if len(values[3]) != n {
		return reply, fmt.Errorf("%w: %d letters for %d entries", scripts.ErrReply, len(values[3]), n)
	}
	rest := values[4:]
	if n == 1 && Outcome(values[3][0]) == Done && len(rest) == 1 {
		reply.Outcomes, reply.Kept = []Outcome{Done}, rest[0]
		return reply, nil
	}
	for i := range n {
		outcome := Outcome(values[3][i])
		reply.Outcomes = append(reply.Outcomes, outcome)
		if outcome != Changed {
			continue
		}
		if len(rest) < 3 {
			return reply, fmt.Errorf("%w: an entry without its fields", scripts.ErrReply)
		}
		reply.Found[i] = recur.Raw{Definition: []byte(rest[0]), Meta: []byte(rest[1]), Ours: []byte(rest[2])}
		rest = rest[3:]
	}
	return reply, nil
}

// FireBatch returns how many of the firings one call carries.
func FireBatch(firings []Firing) int {
	size := 0
	for i := range firings {
		f := &firings[i]
		size += len(f.Raw.Definition) + len(f.Raw.Meta) + 2*len(f.Raw.Ours)
		for _, r := range f.Runs {
			size += len(r.Payload)
		}
		if i == layout.BatchEntries || (i > 0 && size > layout.BatchBytes) {
			return i
		}
	}
	return len(firings)
}
