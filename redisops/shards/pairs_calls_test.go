package shards

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/apitest"
)

// callsThatRead are the methods of the public Client that change no timer of a topic.
var callsThatRead = []string{
	"AskNodes", "Audit", "Connection", "Control", "CountDue", "DeadLetter", "DeadLetters", "Diagnose", "ExportTopic", "Get", "History", "Join", "LastDead", "List", "Overview",
	"Parts", "Payloads", "Prefix", "Queues", "RecordChange", "Report", "Schedules", "Shards", "Stats", "Tail", "Throughput", "Topics", "Wait",
}

// callsOfJoins schedule, run, cancel and mark timers by the calls of the table; they have their
// tests in redisops/joins and internal/stacktest/layout.
var callsOfJoins = []string{"AddParts", "CancelJoin", "CloseJoin"}

// TestModelHasEveryCallThatChangesTimers checks that a new method of the public Client
// is in the table of the model, or is one that only reads.
func TestModelHasEveryCallThatChangesTimers(t *testing.T) {
	t.Parallel()
	modelled := slices.Concat(callsThatRead, callsOfJoins)
	for _, o := range operations {
		modelled = append(modelled, o.calls...)
	}
	methods := apitest.Methods(t, "../..", "Client")
	require.Subset(t, modelled, methods, "a row of operations in pairs_table_test.go, or callsThatRead")
	require.Subset(t, methods, modelled, "methods that no longer exist")
}
