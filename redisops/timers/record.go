package timers

import (
	"strings"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// leaseRecord is what the store keeps of a timer that was claimed: see
// lua/prelude.lua, which writes it.
type leaseRecord struct {
	leased           bool
	claims, failures int
	activation       float64
	lastError        string
	first            float64 // of a debounced one: when it was first scheduled; else 0
}

// readRecord reads a record that belongs to a score, as current in
// lua/prelude.lua does. It is void when another process has written the score
// since, or when it cannot be read.
func readRecord(text string, score float64) (leaseRecord, bool) {
	f := strings.SplitN(text, ":", 7)
	if len(f) < 5 || (f[0] != "l" && f[0] != "w") {
		return leaseRecord{}, false
	}
	wrote, err := scripts.ReadScore(f[4])
	if err != nil || wrote != score {
		return leaseRecord{}, false
	}
	r := leaseRecord{leased: f[0] == "l"}
	var counted [2]bool
	r.claims, counted[0] = scripts.ReadCount(f[1])
	r.failures, counted[1] = scripts.ReadCount(f[2])
	r.activation, err = scripts.ReadScore(f[3])
	if err != nil || !counted[0] || !counted[1] {
		return leaseRecord{}, false
	}
	if len(f) > 5 {
		before, first, _ := strings.Cut(f[5], "~")
		if before != "" {
			if _, err := scripts.ReadScore(before); err != nil {
				return leaseRecord{}, false
			}
		}
		if first != "" {
			if r.first, err = scripts.ReadScore(first); err != nil {
				return leaseRecord{}, false
			}
		}
	}
	if len(f) == 7 {
		r.lastError = f[6]
	}
	return r, true
}
