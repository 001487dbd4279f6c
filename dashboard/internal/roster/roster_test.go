package roster_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/dashboard/internal/roster"
	"github.com/wakebell/wakebell/wakebelltype"
)

// cluster answers for nodes and their topics.
type cluster struct {
	nodes map[string][]string
	err   error
	asked int
}

func (c *cluster) ask(_ context.Context, topics ...string) (answers []wakebelltype.NodeAnswer, err error) {
	c.asked++
	for node, of := range c.nodes {
		for _, topic := range of {
			answers = append(answers, wakebelltype.NodeAnswer{Topic: topic, Node: node, State: &wakebelltype.NodeState{Version: "v1"}})
		}
	}
	return answers, c.err
}

func TestNodeThatDiesIsSilentAndLeavingNodeIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: map[string][]string{"n1": {"a", "b"}, "n2": {"a"}, "n3": {"b"}}}
		r := roster.New(c.ask)
		look := func() map[string]bool {
			answers, asking, err := r.Answers(t.Context(), time.Second, []string{"a", "b"})
			require.NoError(t, err)
			require.False(t, asking)
			silent := map[string]bool{}
			for _, a := range answers {
				silent[a.Node+a.Topic] = a.Silent
			}
			return silent
		}
		all := map[string]bool{"n1a": false, "n1b": false, "n2a": false, "n3b": false}
		require.Equal(t, all, look())
		require.Equal(t, all, look())
		require.Equal(t, 1, c.asked, "pages share a question")

		c.nodes = map[string][]string{"n3": {"b"}}
		watch := func(d time.Duration) { // as an open page does
			for range int(d / time.Second) {
				<-time.After(time.Second)
				look()
				synctest.Wait()
			}
		}
		watch(6 * time.Second)
		require.Equal(t, all, look(), "one answer may be lost")
		r.Left("n1", "a")
		watch(6 * time.Second)
		require.Equal(t, map[string]bool{"n2a": true, "n3b": false}, look())
		watch(11 * time.Minute)
		require.Equal(t, map[string]bool{"n3b": false}, look())
		c.nodes = nil
		<-time.After(5 * time.Minute)
		look()
		synctest.Wait()
		require.Empty(t, look(), "nothing is known of what happened while no page was open")
	})
}

func TestFailedQuestionMakesNoNodeSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: map[string][]string{"n": {"a"}}}
		r := roster.New(c.ask)
		_, _, err := r.Answers(t.Context(), time.Second, []string{"a"})
		require.NoError(t, err)
		c.nodes, c.err = nil, errors.New("refused")
		for range 5 {
			<-time.After(6 * time.Second)
			_, _, _ = r.Answers(t.Context(), time.Second, []string{"a"})
			synctest.Wait()
		}
		answers, _, err := r.Answers(t.Context(), time.Second, []string{"a"})
		require.ErrorContains(t, err, "refused")
		require.Len(t, answers, 1)
		require.False(t, answers[0].Silent)
	})
}

func TestFewTopicsCoverAllNodes(t *testing.T) {
	t.Parallel()
	answers := []roster.Answer{
		{Node: "1", Topic: "a"}, {Node: "2", Topic: "a"}, {Node: "1", Topic: "b"}, {Node: "3", Topic: "b"}, {Node: "4", Topic: "c", Silent: true},
	}
	require.Equal(t, []string{"a", "b"}, roster.Cover(answers, 20))
	require.Equal(t, []string{"a"}, roster.Cover(answers, 1))
	require.Empty(t, roster.Cover(nil, 20))
}
