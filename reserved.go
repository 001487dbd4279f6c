package wakebell

import "strings"

// Reserves reports whether the keys of a queue of this name, without the System's
// prefix, would stand among the keys of the System's topics, recurring schedules or
// gates: whoever may name queues could then reach those.
func (s *System) Reserves(queue string) bool {
	full := s.cfg.Prefix + queue
	if s.cfg.Keys.HashTag {
		full = "{" + full // as the keys begin
	}
	keys := s.cfg.Keys.WithDefaults()
	for _, base := range keys.Bases() {
		if full == base || strings.HasPrefix(full, strings.TrimSuffix(base, ":")+":") {
			return true
		}
	}
	gates := s.cfg.Gates.Keys.WithDefaults()
	for _, base := range gates.Bases() {
		if full == base || strings.HasPrefix(full, base+":") {
			return true
		}
	}
	return false
}
