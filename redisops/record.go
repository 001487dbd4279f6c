package redisops

import (
	"strconv"
	"strings"
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

// readRecord reads a record that belongs to a score. It is none of ours when
// somebody else has written the score since, or when it cannot be read.
func readRecord(text string, score float64) (leaseRecord, bool) {
	f := strings.SplitN(text, ":", 7)
	if len(f) < 5 {
		return leaseRecord{}, false
	}
	wrote, err := readScore(f[4])
	if err != nil || wrote != score {
		return leaseRecord{}, false
	}
	r := leaseRecord{leased: f[0] == "l"}
	var errs [3]error
	r.claims, errs[0] = strconv.Atoi(f[1])
	r.failures, errs[1] = strconv.Atoi(f[2])
	r.activation, errs[2] = readScore(f[3])
	for _, err := range errs {
		if err != nil {
			return leaseRecord{}, false
		}
	}
	if len(f) == 7 {
		r.lastError = f[6]
	}
	if len(f) > 5 {
		if _, first, ok := strings.Cut(f[5], "~"); ok {
			if r.first, err = readScore(first); err != nil {
				return leaseRecord{}, false
			}
		}
	}
	return r, true
}
