package layout_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestLostRegistryIsWrittenAgain deletes the lists of topics and queues while nodes run
// and nothing is scheduled.
func TestLostRegistryIsWrittenAgain(t *testing.T) {
	t.Parallel()
	topic, mail := wakebell.NewTopic[string]("topic"), queue.New[string]("mail")
	handle := func(context.Context, wakebell.Timer[string]) error { return nil }
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		ctx, c := t.Context(), stacktest.Serve(t, rdb, wakebell.Handle(topic, handle), wakebell.HandleQueue(mail, handle)).Client()
		_, err := topic.Schedule(ctx, c, "body", wakebell.In(time.Hour))
		require.NoError(t, err)
		_, err = wakebell.NewTopic[string]("other").Schedule(ctx, c, "body", wakebell.In(time.Hour))
		require.NoError(t, err)
		listed := func(discover bool) (names []string) {
			for name, err := range c.Topics(ctx, discover, wakebelltype.Page{}) {
				require.NoError(t, err)
				names = append(names, name)
			}
			return names
		}
		require.Equal(t, []string{"other", "topic"}, listed(false))
		require.NoError(t, rdb.Del(ctx, "timers_topics", "timers_queues").Err())
		<-time.After(time.Minute)
		require.Equal(t, []string{"topic"}, listed(false))
		require.Equal(t, []string{"mail"}, rdb.SMembers(ctx, "timers_queues").Val())
		require.Equal(t, []string{"other", "topic"}, listed(true))
		require.Equal(t, []string{"other", "topic"}, listed(false), "what was discovered is registered")
	})
}
