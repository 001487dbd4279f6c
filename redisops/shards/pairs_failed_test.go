package shards

import (
	"strings"
	"testing"

	"github.com/wakebell/wakebell/internal/redistest"
)

// drawn is a step as a failed run of the model prints it.
type drawn struct {
	operation           string
	target, b, c, place int
	flag                bool
}

// failed are runs of the model that were wrong once, as shorten left them.
var failed = []struct {
	name  string
	skips bool
	steps []drawn
}{
	{"a lease without its key is no timer that a peer moved", true, []drawn{
		{"schedule", 1, 8, 1, 0, false},
		{"schedule once", 3, 5, 0, 0, false},
		{"claim", 0, 8, 0, 0, false},
		{"schedule", 4, 2, 0, 0, true},
		{"pause", 5, 6, 1, 0, false},
		{"schedule once", 0, 4, 1, 0, false},
		{"settle", 0, 6, 0, 0, false},
		{"move that dies after taking", 3, 3, 1, 0, true},
	}},
	{"leases of many without their key", false, []drawn{
		{"schedule many", 0, 1, 1, 0, false},
		{"schedule with an idempotency key", 2, 4, 1, 0, false},
		{"claim", 0, 2, 0, 0, true},
		{"schedule", 4, 2, 0, 0, false},
		{"move", 3, 4, 0, 0, false},
		{"settle", 6, 6, 0, 0, true},
	}},
	{"a key under a rate alone stays with a running timer that is replaced", true, []drawn{
		{"reshard", 2, 7, 0, 0, true},
		{"wait", 4, 9, 0, 1, false},
		{"schedule debounce", 0, 9, 1, 0, false},
		{"schedule", 2, 7, 0, 0, true},
		{"schedule", 1, 7, 0, 0, false},
		{"reshard", 5, 4, 1, 0, true},
		{"retune", 5, 9, 1, 0, true},
		{"audit", 1, 3, 0, 0, false},
		{"wait", 4, 8, 1, 0, false},
		{"reshard", 5, 3, 0, 0, false},
		{"schedule", 2, 7, 0, 0, true},
	}},
	{"a new timer of a key under a rate alone is written where one runs", true, []drawn{
		{"schedule", 2, 2, 1, 0, true},
		{"schedule", 3, 4, 1, 0, true},
		{"reshard", 7, 5, 1, 0, true},
		{"retune", 5, 9, 0, 0, true},
		{"wait", 4, 3, 1, 0, false},
		{"start", 6, 7, 1, 0, false},
		{"reshard", 6, 5, 1, 0, true},
		{"claim", 7, 3, 1, 0, true},
		{"wait", 6, 2, 1, 1, true},
		{"audit", 3, 5, 0, 0, true},
		{"retune", 4, 1, 0, 0, true},
		{"schedule", 0, 2, 1, 0, true},
		{"schedule", 3, 8, 0, 0, true},
	}},
	{"tokens of a key that has moved stay taken", true, []drawn{
		{"retune", 3, 4, 1, 0, false},
		{"import", 1, 8, 1, 0, false},
		{"schedule", 2, 8, 0, 0, false},
		{"sweep", 7, 8, 0, 0, false},
		{"handle all", 2, 5, 0, 0, false},
		{"move", 5, 4, 0, 0, true},
		{"import", 2, 0, 0, 0, true},
	}},
	{"the target of a move is divided", false, []drawn{
		{"divide", 7, 8, 0, 0, true},
		{"import", 3, 6, 0, 0, true},
		{"pause", 0, 7, 1, 1, true},
		{"move", 0, 0, 1, 0, false},
		{"forget", 4, 4, 1, 1, true},
	}},
	{"Once of a running timer whose key was taken", false, []drawn{
		{"reshard", 5, 2, 1, 0, true},
		{"retune", 7, 9, 1, 0, true},
		{"schedule once", 2, 6, 1, 0, true},
		{"schedule with an idempotency key", 1, 5, 1, 0, false},
		{"wait", 7, 8, 0, 1, true},
		{"reshard", 5, 1, 1, 0, false},
		{"wait", 1, 8, 1, 0, true},
		{"audit", 5, 2, 1, 0, true},
		{"reshard that dies after taking", 6, 4, 1, 0, true},
		{"schedule once", 2, 5, 0, 0, true},
	}},
	{"a retry that waits without its key stays in its shard", false, []drawn{
		{"schedule", 4, 0, 0, 0, false},
		{"reshard", 1, 7, 0, 0, false},
		{"audit", 3, 2, 0, 0, true},
		{"schedule", 8, 0, 0, 0, false},
		{"schedule debounce", 0, 6, 1, 0, true},
		{"wait", 1, 9, 1, 0, true},
		{"retune", 7, 7, 0, 0, true},
		{"schedule keep", 6, 9, 1, 0, false},
		{"settle", 8, 4, 0, 0, false},
		{"reshard", 6, 6, 0, 0, true},
		{"schedule debounce", 2, 7, 0, 0, true},
		{"handle all", 7, 5, 0, 0, false},
		{"retune", 5, 9, 1, 0, true},
	}},
	{"retries that wait without their key never move", true, []drawn{
		{"reshard", 4, 7, 0, 0, false},
		{"schedule", 1, 3, 1, 0, false},
		{"schedule", 3, 1, 0, 0, true},
		{"reshard", 5, 7, 1, 1, true},
		{"schedule", 4, 0, 0, 0, true},
		{"schedule", 2, 7, 0, 0, false},
		{"audit", 5, 0, 1, 0, true},
		{"settle", 1, 4, 0, 0, true},
	}},
}

// TestRunsThatFailedOnce plays runs of the model that were wrong once, which draws that meet
// the same may take thousands of seeds for.
func TestRunsThatFailedOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, run := range failed {
		p := plan{skips: run.skips}
		for _, d := range run.steps {
			p.steps = append(p.steps, step{named(d.operation), d.target, d.b, d.c, d.place, d.flag})
		}
		if wrong, log := play(t, server, p); wrong != "" {
			t.Errorf("%s:\n%s\n%s", run.name, strings.Join(log, "\n"), wrong)
		}
	}
}
