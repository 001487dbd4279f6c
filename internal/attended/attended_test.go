package attended_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestTopicWaitsForNode(t *testing.T) {
	t.Parallel()
	late := wakebelltype.Overview{Stats: wakebelltype.Stats{Total: 3, Due: 2, Lag: 2 * time.Minute}}
	require.Equal(t, "no node, and due timers wait for 2m0s", attended.Waits(late))
	for name, change := range map[string]func(*wakebelltype.Overview){
		"a node":        func(o *wakebelltype.Overview) { o.Nodes = 1 },
		"unknown nodes": func(o *wakebelltype.Overview) { o.Nodes = -1 },
		"paused":        func(o *wakebelltype.Overview) { o.Stats.Paused = true },
		"just due":      func(o *wakebelltype.Overview) { o.Stats.Lag = attended.Limit },
		"empty":         func(o *wakebelltype.Overview) { o.Stats = wakebelltype.Stats{} },
		"unread":        func(o *wakebelltype.Overview) { o.Err = errors.New("refused") },
	} {
		o := late
		change(&o)
		require.Empty(t, attended.Waits(o), name)
	}
}

func TestScheduleIsOverdue(t *testing.T) {
	t.Parallel()
	require.Equal(t, "due for 1m30s, and no beat has fired it", attended.Unfired(90*time.Second))
	require.Empty(t, attended.Unfired(attended.Limit), "just due")
	require.Empty(t, attended.Unfired(0))
}
