package actors

import (
	"strconv"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
)

// Of a node with many topics, the end of one looks at no other: those here are nil, so that a
// look at one panics.
func TestRemovalLooksAtNoOtherTopic(t *testing.T) {
	t.Parallel()
	const others = 1000
	pid := func(topic string) *actor.PID { return actor.NewPID("local", "supervisor/"+pollerName(topic)) }
	s := &supervisor{
		rt:       &Runtime{topics: map[string]*poller.Shared{}, shards: map[string][]*poller.Shared{}},
		pollers:  map[string]*actor.PID{"a/b": pid("a/b")},
		removals: map[string]*topicRemoval{"a/b": {poller: pid("a/b"), drained: &messages.TopicDrained{}}},
		stopped:  true,
	}
	for i := range others {
		s.rt.topics[strconv.Itoa(i)], s.removals[strconv.Itoa(i)] = nil, nil
	}
	s.drainRestarted(pid("restarted"))
	s.pollerStopped(pid("unknown"))
	require.Len(t, s.removals, others+1)
	s.pollerStopped(pid("a/b"))
	require.NotContains(t, s.removals, "a/b")
	require.Empty(t, s.pollers)
	require.Len(t, s.removals, others)
	require.Len(t, s.rt.topics, others)
}
