// Package contents reads everything that an embedded server has, and gives it to one.
package contents

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2"
)

// Contents is what a server has.
type Contents []key

type key struct {
	name   string
	add    []string // the command that adds elements, before them
	width  int      // the arguments of an element
	values []string
	scores []float64 // of values, in a sorted set
	after  [][]string
}

// Of returns the contents of a server. No command may be executed meanwhile.
func Of(m *miniredis.Miniredis) (Contents, error) {
	var keys Contents
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

// Bounds of a batch of commands.
const (
	batchBytes    = 64 << 10
	batchElements = 512
)

// Commands emits commands that make the contents, in batches.
func (keys Contents) Commands(emit func([][]string) error) error {
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

// Restore gives a server the contents instead of its own. No command may be executed meanwhile.
func (keys Contents) Restore(m *miniredis.Miniredis) error {
	m.FlushAll()
	return keys.Commands(func(batch [][]string) error {
		for _, args := range batch {
			if _, err := reply(m, args...); err != nil {
				return fmt.Errorf("%s %s: %w", args[0], args[1], err)
			}
		}
		return nil
	})
}

// String is the same for the same contents.
func (keys Contents) String() string {
	var lines []string
	for _, k := range keys {
		values := slices.Clone(k.values)
		for i, score := range k.scores {
			values[i] = fmt.Sprint(values[i], " ", score)
		}
		if k.scores != nil {
			slices.Sort(values)
		}
		lines = append(lines, fmt.Sprintf("%q %q %q", k.add, values, k.after))
	}
	return strings.Join(lines, "\n")
}
