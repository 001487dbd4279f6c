package sharding

// Hash returns the hash by which timers are divided: FNV-1a with 64 bits, and then the
// finalizer of MurmurHash3, because the low bits of FNV-1a alone are uneven for ids that
// count up. Clients in other languages compute the same; docs/keys.md has test vectors.
func Hash(text string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * prime
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// ShardOf returns the shard of a timer, 0 to n - 1: that of its key, if it has one, so
// that the timers of a key share a shard, and otherwise that of its id.
func ShardOf(id, key string, n int) int {
	if n <= 1 {
		return 0
	}
	if key != "" {
		id = key
	}
	return int(Hash(id) % uint64(n)) //nolint:gosec // less than n
}
