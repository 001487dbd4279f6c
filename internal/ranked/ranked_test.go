package ranked_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/ranked"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestTopicsAreSortedByEachOrder(t *testing.T) {
	t.Parallel()
	topics := []wakebelltype.Overview{
		{Topic: "c", Stats: wakebelltype.Stats{Due: 1, Lag: time.Hour}},
		{Topic: "b", Stats: wakebelltype.Stats{Due: 9, Dead: 1}, Recent: wakebelltype.ThroughputCounts{Handled: 50, Failed: 51}},
		{Topic: "a", Stats: wakebelltype.Stats{Due: 1}, Recent: wakebelltype.ThroughputCounts{Handled: 100, Started: 2, Lateness: time.Minute}},
	}
	for order, want := range map[string]string{
		"name": "abc", "due": "bac", "oldest": "cab", "late": "abc", "dead": "bac", "rate": "bac", "unknown": "abc",
	} {
		ranked.Sort(topics, order)
		names := ""
		for _, o := range topics {
			names += o.Topic
		}
		require.Equal(t, want, names, order)
		require.Equal(t, order != "unknown", ranked.Known(order))
	}
	require.InDelta(t, 10, ranked.Rate(wakebelltype.Overview{Recent: wakebelltype.ThroughputCounts{Handled: 50, Failed: 49, Dead: 1}}), 0)
}

func TestProblemOfTopic(t *testing.T) {
	t.Parallel()
	late := wakebelltype.Stats{Total: 1, Due: 1, Lag: 2 * time.Minute}
	for want, o := range map[string]wakebelltype.Overview{
		"refused":                               {Err: errors.New("refused"), Damage: "lost"},
		"lost":                                  {Damage: "lost", Stats: late},
		"no node, and due timers wait for 2m0s": {Stats: late},
		"due timers wait for 2m0s":              {Stats: late, Nodes: 1},
		"circuit breaker open on n":             {Nodes: 1, Reports: []wakebelltype.NodeReport{{Node: "n", State: wakebelltype.NodeState{Breaker: "open", BreakerSince: time.Unix(1, 0)}}}},
		"3 dead letters":                        {Stats: wakebelltype.Stats{Dead: 3}},
		"":                                      {Stats: wakebelltype.Stats{Total: 5, Due: 1, Lag: time.Minute}, Nodes: 1},
	} {
		require.Equal(t, want, ranked.Problem(o))
	}
	late.Paused = true
	require.Empty(t, ranked.Problem(wakebelltype.Overview{Stats: late, Nodes: 1}), "an operator has paused it")
}
