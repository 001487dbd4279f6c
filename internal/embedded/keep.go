package embedded

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// kept is a key as it was.
type kept struct {
	name  string
	kind  string
	text  string
	list  []string // of a list or a set; the fields of a hash and their values
	ranks map[string]float64
	lines []miniredis.StreamEntry
	life  time.Duration
}

// Keep keeps what the server has, and returns a function that gives it that again, a while
// later: what was written meanwhile is lost, as at a failover to a replica that lags behind. No
// command may be executed at the same time as either.
func (s *Server) Keep() (restore func(after time.Duration) error, err error) {
	var all []kept
	for _, name := range s.m.Keys() {
		k, err := s.keep(name)
		if err != nil {
			return nil, fmt.Errorf("keep %q: %w", name, err)
		}
		all = append(all, k)
	}
	return func(after time.Duration) error {
		s.m.FlushAll()
		for i := range all {
			if err := s.restore(&all[i], after); err != nil {
				return fmt.Errorf("restore %q: %w", all[i].name, err)
			}
		}
		return nil
	}, nil
}

func (s *Server) keep(name string) (k kept, err error) {
	k = kept{name: name, kind: s.m.Type(name), life: s.m.TTL(name)}
	switch k.kind {
	case "string":
		k.text, err = s.m.Get(name)
	case "hash":
		var fields []string
		fields, err = s.m.HKeys(name)
		for _, f := range fields {
			k.list = append(k.list, f, s.m.HGet(name, f))
		}
	case "list":
		k.list, err = s.m.List(name)
		k.list = slices.Clone(k.list)
	case "set":
		k.list, err = s.m.Members(name)
	case "zset":
		k.ranks, err = s.m.SortedSet(name)
		k.ranks = maps.Clone(k.ranks)
	case "stream":
		k.lines, err = s.m.Stream(name)
		k.lines = slices.Clone(k.lines)
	default:
		err = fmt.Errorf("a %s cannot be kept", k.kind)
	}
	return k, err
}

func (s *Server) restore(k *kept, after time.Duration) (err error) {
	if k.life > 0 && k.life <= after {
		return nil
	}
	switch k.kind {
	case "string":
		err = s.m.Set(k.name, k.text)
	case "hash":
		s.m.HSet(k.name, k.list...)
	case "list":
		_, err = s.m.Push(k.name, k.list...)
	case "set":
		_, err = s.m.SetAdd(k.name, k.list...)
	case "zset":
		for member, score := range k.ranks {
			if _, err := s.m.ZAdd(k.name, score, member); err != nil {
				return err
			}
		}
	case "stream":
		for _, e := range k.lines {
			if _, err := s.m.XAdd(k.name, e.ID, e.Values); err != nil {
				return err
			}
		}
	}
	if err == nil && k.life > 0 {
		s.m.SetTTL(k.name, k.life-after)
	}
	return err
}
