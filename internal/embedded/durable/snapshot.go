package durable

import (
	"slices"
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// snapshot writes the present state to a file, so that the log before it can be removed.
// Commands wait while the state is collected; strings are not copied.
func (s *Store) snapshot() error {
	s.snapshots.Lock()
	defer s.snapshots.Unlock()
	began := time.Now()
	s.mu.Lock()
	gen, err := s.log.Rotate()
	if err != nil {
		s.mu.Unlock()
		return err
	}
	base, _ := s.log.Seq()
	clock := s.clock
	keys, err := collect(s.m)
	s.mu.Unlock()
	paused := time.Since(began)
	if err != nil {
		return err
	}
	if err := s.log.Snapshot(gen, base, clock, keys.batches); err != nil {
		return err
	}
	_, size := s.log.Size()
	s.logger.Info("took a snapshot of the embedded store", "bytes", size, "duration", time.Since(began), "paused", paused)
	return nil
}

// state is what a server has.
type state []key

type key struct {
	name   string
	add    []string // the command that adds elements, before them
	width  int      // the arguments of an element
	values []string
	scores []float64 // of values, in a sorted set
	after  [][]string
}

// collect returns the state of a server. No command may be executed meanwhile.
func collect(m *miniredis.Miniredis) (state, error) {
	var keys state
	db := m.DB(0)
	for _, name := range m.Keys() {
		k := key{name: name, width: 1}
		var err error
		switch db.Type(name) {
		case "string":
			k.add, k.width = []string{"SET", name}, 1
			var v string
			v, err = db.Get(name)
			k.values = []string{v}
		case "hash":
			k.add, k.width = []string{"HSET", name}, 2
			var fields []string
			if fields, err = db.HKeys(name); err == nil {
				k.values = make([]string, 0, 2*len(fields))
				for _, f := range fields {
					k.values = append(k.values, f, db.HGet(name, f))
				}
			}
		case "list":
			k.add = []string{"RPUSH", name}
			var l []string
			l, err = db.List(name)
			k.values = slices.Clone(l)
		case "set":
			k.add = []string{"SADD", name}
			k.values, err = db.Members(name)
		case "zset":
			k.add = []string{"ZADD", name}
			var members map[string]float64
			members, err = db.SortedSet(name)
			k.values, k.scores = make([]string, 0, len(members)), make([]float64, 0, len(members))
			for member, score := range members {
				k.values, k.scores = append(k.values, member), append(k.scores, score)
			}
		case "stream":
			err = k.stream(m)
		}
		if err != nil {
			return nil, err
		}
		if ttl := db.TTL(name); ttl > 0 {
			k.after = append(k.after, []string{"PEXPIRE", name, strconv.FormatInt(ttl.Milliseconds(), 10)})
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// Bounds of a batch of commands in a snapshot.
const (
	batchBytes    = 64 << 10
	batchElements = 512
)

// batches emits commands that make the state.
func (keys state) batches(emit func([][]string) error) error {
	var batch [][]string
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := emit(batch)
		batch, size = batch[:0], 0
		return err
	}
	for _, k := range keys {
		for i := 0; i < len(k.values); {
			command := slices.Clone(k.add)
			for n := 0; n < batchElements && size < batchBytes && i < len(k.values); n++ {
				if k.scores != nil {
					command = append(command, strconv.FormatFloat(k.scores[i], 'g', -1, 64))
				}
				for _, v := range k.values[i : i+k.width] {
					command = append(command, v)
					size += len(v)
				}
				i += k.width
			}
			batch = append(batch, command)
			if size >= batchBytes {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		batch = append(batch, k.after...)
		size += 100 * len(k.after)
		if size >= batchBytes || len(batch) >= batchElements {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
