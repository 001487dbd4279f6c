package wakebell

import (
	"strings"

	"github.com/wakebell/wakebell/redisops/gates"
)

// Reserves reports whether the keys of a queue of this name, given without the
// System's prefix, would lie among the keys of topics, recurring schedules or
// gates. A client with the permission to use any queue could then change those.
func (s *System) Reserves(queue string) bool {
	full := s.cfg.Prefix + queue
	if s.cfg.Keys.HashTag {
		full = "{" + full // keys of queues begin so
	}
	for _, base := range s.store.Keys().Bases() {
		if full == base || strings.HasPrefix(full, strings.TrimSuffix(base, ":")+":") {
			return true
		}
	}
	gates, _ := gates.NewKeyspace(s.cfg.Gates.Keys) // checked when the System was made
	for _, base := range gates.Bases() {
		if full == base || strings.HasPrefix(full, base+":") {
			return true
		}
	}
	return false
}
