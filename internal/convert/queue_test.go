package convert_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestDraftsTravelWithSettingsOfTheirQueue(t *testing.T) {
	t.Parallel()
	q := queue.New[string]("mail", queue.KeySeparator("/"), queue.DeadLetterKey("dead"), queue.FreeKeyOnFailure(),
		queue.DeduplicationWindow(time.Minute), queue.PendingCap(7, queue.FullDropsOldest))
	drafts := []queue.Draft{q.Draft("a", queue.DeduplicationKey("k")), q.Draft("b")}
	other := queue.New[string]("other").Draft("c")
	m, n, err := convert.PublishMessage(append(drafts, other)...)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, drafts, convert.PublishDrafts(m))
	m, n, err = convert.PublishMessage(other)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, []queue.Draft{other}, convert.PublishDrafts(m))
}

func TestPublishThatWaitsIsSentAsOneThatFails(t *testing.T) {
	t.Parallel()
	m, _, err := convert.PublishMessage(queue.New[string]("mail", queue.PendingCap(7, queue.FullWaits)).Draft("a"))
	require.NoError(t, err)
	settings := convert.PublishDrafts(m)[0].Queue
	require.Equal(t, queue.FullFails, settings.WhenFull)
	require.Equal(t, 7, settings.PendingCap)
}

func TestMessageToPublishIsBounded(t *testing.T) {
	t.Parallel()
	q := queue.New[[]byte]("mail")
	many := make([]queue.Draft, 501)
	for i := range many {
		many[i] = q.Draft(nil)
	}
	_, n, err := convert.PublishMessage(many...)
	require.NoError(t, err)
	require.Equal(t, 500, n)
	large := q.Draft(bytes.Repeat([]byte("x"), 600<<10))
	_, n, err = convert.PublishMessage(large, large)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, _, err = convert.PublishMessage()
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	broken := errors.New("broken")
	_, n, err = convert.PublishMessage(large, queue.Draft{Queue: large.Queue, Err: broken})
	require.ErrorIs(t, err, broken)
	require.Equal(t, 1, n)
}
