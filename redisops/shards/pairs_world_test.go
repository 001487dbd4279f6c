package shards

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// world is a topic on two Redis, with clients and nodes, and what it must do by its
// documentation. It checks itself after every step.
type world struct {
	t     testing.TB
	ctx   context.Context
	sites [2]*site
	skips bool // SkipFailed of all nodes

	move    *mover            // from the first site to the second; nil: none, or its process ended
	moved   bool              // a move has begun
	transit map[string]*timer // between the two Redis
	version int               // of payloads
	calls   []keyedCall
	period  int      // counts changes of the limits that nodes use
	log     []string // what the steps have done
}

// site is one Redis with what uses it.
type site struct {
	number   int
	rdb      *redis.Client
	clients  [2]*Store
	nodes    [2]*node
	keys     timers.Keyspace
	timers   map[string]*timer
	marks    map[string]time.Time // of Once: the instants
	dead     map[string]bool      // ids that may have dead letters
	runs     []*run
	control  wakebelltype.Control
	python   bool     // has written, so the order of keys is as it left it
	known    []string // what its nodes know of limits
	to       int      // shards that a resharding is to give; 0: none
	snapshot *snapshot
}

// timer is a timer that is to be delivered.
type timer struct {
	id, key   string
	payload   string
	due       time.Time // when it is to run, also while it waits
	failed    bool      // waits for its retry
	keeps     bool      // its key meanwhile: the node that ran it had not noticed that there are keys
	delivered bool      // since it was scheduled
}

// run is a lease that a node got.
type run struct {
	id, key, place string
	from, until    time.Time
	period         int
	flow           exchange.Flow
	ended          bool // settled, cancelled or replaced
	released       bool
	counts         bool // it holds its key for a PerKey that is set later
	version        string
	node           *node
	lease          exchange.Lease
}

func (r *run) live() bool { return !r.ended && time.Now().Before(r.until) }

// violation ends a run of the model.
type violation struct{ text string }

func (w *world) fail(format string, args ...any) {
	panic(violation{fmt.Sprintf(format, args...)})
}

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// must ends the run unless a call has succeeded, and reports whether it did what it says:
// an error that wraps ErrInvalid or ErrNotFound says that it did nothing.
func (w *world) must(err error, what string) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, wakebelltype.ErrInvalid), errors.Is(err, wakebelltype.ErrNotFound):
		w.note("  refused: %v", err)
		return false
	default:
		w.fail("%s: %v", what, err)
		return false
	}
}

const modelTopic = "t"

func newWorld(t testing.TB, dbs [2]*redis.Client, skips bool) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), skips: skips, transit: map[string]*timer{}}
	for i, rdb := range dbs {
		s := &site{
			number: i, rdb: rdb, timers: map[string]*timer{}, marks: map[string]time.Time{}, dead: map[string]bool{},
		}
		if err := rdb.FlushDB(w.ctx).Err(); err != nil {
			w.fail("flush: %v", err)
		}
		for j := range s.clients {
			s.clients[j] = w.store(rdb)
		}
		s.keys = s.clients[0].timers.Keys()
		for j := range s.nodes {
			s.nodes[j] = &node{site: s, number: j}
		}
		w.sites[i] = s
		w.start(s.nodes[0])
	}
	return w
}

func (w *world) store(rdb *redis.Client) *Store {
	of, err := timers.New(rdb, wakebelltype.Keys{})
	if err != nil {
		w.fail("store: %v", err)
	}
	of.NoCoalescing, of.NoPayloadsApart, of.NoCounts = true, true, true
	s := New(of)
	s.bounds = stepBounds{timers: 2, bytes: moveBytes} // so that a key moves in several steps
	return s
}

// physicals are the names of all physical topics that the model may use.
func physicals() (names []string) {
	for n := 1; n <= mostShards; n++ {
		names = append(names, sharding.Names(modelTopic, n)...)
	}
	return names
}

const mostShards = 3

// found is a timer as it is stored.
type found struct {
	place string
	score float64
}

// stored is what a site has.
type stored struct {
	timers  map[string]found
	twice   []string        // ids in two physical topics
	moving  map[string]bool // ids in an outbox
	leaving map[string]bool // those of them that move to the other Redis
}

// scan reads what a site has.
func (w *world) scan(s *site) stored {
	names := physicals()
	pipe := s.rdb.Pipeline()
	var lists []*redis.ZSliceCmd
	var boxes []*redis.MapStringStringCmd
	for _, name := range names {
		k := s.keys.Of(name)
		lists = append(lists, pipe.ZRangeWithScores(w.ctx, k.Timeline, 0, -1))
		boxes = append(boxes, pipe.HGetAll(w.ctx, k.Moving()), pipe.HGetAll(w.ctx, k.Leaving()))
	}
	if _, err := pipe.Exec(w.ctx); err != nil {
		w.fail("scan: %v", err)
	}
	all := stored{timers: map[string]found{}, moving: map[string]bool{}, leaving: map[string]bool{}}
	for i, name := range names {
		for _, z := range lists[i].Val() {
			id, _ := z.Member.(string)
			if _, known := all.timers[id]; known {
				all.twice = append(all.twice, id)
			}
			all.timers[id] = found{name, z.Score}
		}
	}
	for i, box := range boxes {
		for _, text := range box.Val() {
			batch, err := readBatch(text)
			if err != nil {
				w.fail("outbox: %v", err)
			}
			for _, item := range batch.items {
				if batch.hasTimers() {
					all.moving[item[0]] = true
					all.leaving[item[0]] = all.leaving[item[0]] || i%2 == 1
				}
			}
		}
	}
	return all
}

// end notes that the run of a timer has ended: it is cancelled or replaced.
func (s *site) end(id string) {
	for _, r := range s.runs {
		if r.id == id {
			r.ended = true
		}
	}
}

func (s *site) running(id string) *run {
	for _, r := range s.runs {
		if r.id == id && r.live() {
			return r
		}
	}
	return nil
}

// put notes that a timer was written.
func (s *site) put(id, key, payload string, due time.Time) {
	s.end(id)
	if old := s.timers[id]; old != nil && key == "" {
		key = old.key
	}
	s.timers[id] = &timer{id: id, key: key, payload: payload, due: due}
}

func (s *site) remove(id string) {
	s.end(id)
	delete(s.timers, id)
}

// snapshot is a state to which a failover returns.
type snapshot struct {
	dumps   map[string]string
	timers  map[string]timer
	marks   map[string]time.Time
	dead    map[string]bool
	runs    []run
	control wakebelltype.Control
	python  bool
	to      int
}

// take keeps the state of a site, as on a replica that lags behind.
func (w *world) snapshot(s *site) {
	keys, err := s.rdb.Keys(w.ctx, "*").Result()
	if err != nil {
		w.fail("snapshot: %v", err)
	}
	keep := &snapshot{
		dumps: map[string]string{}, timers: map[string]timer{}, marks: maps.Clone(s.marks), dead: maps.Clone(s.dead),
		control: s.control, python: s.python, to: s.to,
	}
	for _, key := range keys {
		if key == clockKey || strings.HasPrefix(key, s.keys.Hint) {
			continue
		}
		if keep.dumps[key], err = s.rdb.Dump(w.ctx, key).Result(); err != nil {
			w.fail("snapshot: %v", err)
		}
	}
	for id, t := range s.timers {
		keep.timers[id] = *t
	}
	for _, r := range s.runs {
		keep.runs = append(keep.runs, *r)
	}
	s.snapshot = keep
}

// failover returns a site to its snapshot. Handlers go on, and nodes and clients have what
// they had.
func (w *world) failover(s *site) {
	keep := s.snapshot
	s.snapshot = nil
	keys, err := s.rdb.Keys(w.ctx, "*").Result()
	if err != nil {
		w.fail("failover: %v", err)
	}
	pipe := s.rdb.Pipeline()
	for _, key := range keys {
		if key != clockKey {
			pipe.Del(w.ctx, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keep.dumps)) {
		pipe.Restore(w.ctx, key, 0, keep.dumps[key])
	}
	if _, err := pipe.Exec(w.ctx); err != nil {
		w.fail("failover: %v", err)
	}
	s.timers, s.marks, s.dead, s.control, s.python, s.to = map[string]*timer{}, keep.marks, keep.dead, keep.control, keep.python, keep.to
	for id, t := range keep.timers {
		s.timers[id] = &t
	}
	s.runs = nil
	for _, r := range keep.runs {
		s.runs = append(s.runs, &r)
	}
	w.period++
}
