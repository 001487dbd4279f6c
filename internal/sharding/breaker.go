package sharding

import "slices"

// BreakerRank orders the states of the circuit breakers of shards by how much they hold
// back; -1: none.
func BreakerRank(state string) int {
	return slices.Index([]string{"closed", "half-open", "open"}, state)
}
