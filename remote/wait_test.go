package remote_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestWaitOverNetwork compares how a timer has ended, and what its handler reported, as Redis
// and a node say.
func TestWaitOverNetwork(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	release := make(chan struct{})
	n := serve(t, remote.Config{}, wakebell.HandleResult(topic, func(ctx context.Context, timer wakebell.Timer[string]) (int, error) {
		<-release
		if timer.Body == "bad" {
			return 0, wakebell.Reject(errors.New("no such account"))
		}
		return len(timer.Body), timer.Progress(ctx, 0.5, "half")
	}))
	client := dial(t, n)
	for _, id := range []string{"good", "bad"} {
		_, err := topic.Schedule(t.Context(), client, id, wakebell.ID(id))
		require.NoError(t, err)
	}
	answers := make(chan wakebell.Ending, 1)
	go func() {
		e, err := client.Wait(t.Context(), topic.Name(), "good")
		if err != nil {
			e.Reason = err.Error()
		}
		answers <- e
	}()
	close(release)
	ending := receive(t, answers)
	require.Equal(t, wakebelltype.EndDone, ending.End, ending.Reason)
	value, err := wakebell.ReadResult[int](t.Context(), client, topic.Name(), "good", ending.Result)
	require.NoError(t, err)
	require.Equal(t, 4, value)
	report, err := client.Report(t.Context(), topic.Name(), "good")
	require.NoError(t, err)
	require.Equal(t, "half", report.Progress.Note)
	own, err := n.Client().Report(t.Context(), topic.Name(), "good")
	require.NoError(t, err)
	require.Equal(t, own.Progress.Attempt, report.Progress.Attempt)
	require.True(t, own.Progress.At.Equal(report.Progress.At))
	require.Equal(t, own.Result.Content.Body, report.Result.Content.Body)

	ending, err = client.Wait(t.Context(), topic.Name(), "bad")
	require.NoError(t, err)
	require.Equal(t, wakebell.Ending{End: wakebelltype.EndDead, Reason: "no such account"}, ending)
	ending, err = client.Wait(t.Context(), topic.Name(), "none")
	require.NoError(t, err)
	require.Equal(t, wakebelltype.EndMissing, ending.End)
}
