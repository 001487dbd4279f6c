package life_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestNodesOfManyTopicsAnswerOnce asks for topics of which one has shards and one no node.
func TestNodesOfManyTopicsAnswerOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client(t)
	ignore := func(context.Context, wakebell.Timer[string]) error { return nil }
	plain, divided := wakebell.NewTopic[string]("plain"), wakebell.NewTopic[string]("divided")
	node := stacktest.Serve(t, rdb, wakebell.Handle(plain, ignore), wakebell.Handle(divided, ignore, wakebell.Shards(4)))
	c := stacktest.Client(t, rdb, connection.Config{})
	var answers []wakebelltype.NodeAnswer
	stacktest.Eventually(t, func() bool { // it has subscribed
		var err error
		answers, err = c.AskNodes(t.Context(), "plain", "divided", "none", "plain")
		return err == nil && len(answers) == 2
	})
	require.ElementsMatch(t, []string{"plain", "divided"}, []string{answers[0].Topic, answers[1].Topic})
	require.Equal(t, answers[0].Node, answers[1].Node)
	require.NotZero(t, answers[1].State.Started)

	require.NoError(t, node.Stop())
	answers, err := c.AskNodes(t.Context(), "plain", "divided")
	require.NoError(t, err)
	require.Empty(t, answers)

	_, err = c.AskNodes(t.Context(), "plain", "")
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	_, err = c.AskNodes(t.Context(), make([]string, 10_001)...)
	require.ErrorContains(t, err, "10001, want at most 10000")
	answers, err = c.AskNodes(t.Context())
	require.NoError(t, err)
	require.Empty(t, answers)
}

// TestNodeThatStopsSaysThatItLeaves has a watcher see it, and so of a node that gives up the
// topic alone.
func TestNodeThatStopsSaysThatItLeaves(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]wakebell.HandlerOption{"plain": nil, "shards": {wakebell.Shards(2)}} {
		for how, leaves := range map[string]func(*wakebell.System, string) error{
			"stop":   func(sys *wakebell.System, _ string) error { return sys.Stop() },
			"remove": (*wakebell.System).Remove,
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				topic := wakebell.NewTopic[string](redistest.Name(t))
				sys := stacktest.Serve(t, redistest.Shared(t), wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil }, options...))
				events := stacktest.Tail(t, stacktest.Client(t, redistest.Shared(t), connection.Config{}), topic.Name(), 1)
				require.NoError(t, leaves(sys, topic.Name()))
				for {
					if e := stacktest.Receive(t, events); e.Kind == wakebelltype.EventLeft {
						require.NotEmpty(t, e.Node)
						return
					}
				}
			})
		}
	}
}
