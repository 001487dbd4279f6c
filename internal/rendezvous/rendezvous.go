// Package rendezvous divides keys among members by rendezvous hashing (highest random
// weight): all processes that know the same members agree on an order of them for each
// key, and a member that comes or goes moves its own keys only.
package rendezvous

import "hash/fnv"

// Rank returns the place of member in the order of members for key: 0 is the first. It
// returns -1 if members does not have it. The order of members does not matter.
func Rank(key, member string, members []string) int {
	own, rank, found := weight(key, member), 0, false
	for _, other := range members {
		if other == member {
			found = true
			continue
		}
		if w := weight(key, other); w > own || w == own && other < member {
			rank++
		}
	}
	if !found {
		return -1
	}
	return rank
}

// First returns the member of rank 0; empty without members.
func First(key string, members []string) string {
	for _, m := range members {
		if Rank(key, m, members) == 0 {
			return m
		}
	}
	return ""
}

// weight is the hash of a pair. Nodes of different versions must agree on it, so it
// never changes.
func weight(key, member string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(member))
	// The high bits of FNV hardly depend on the last bytes: mix, as SplitMix64 does.
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
