package queue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// A wrong draft fails the whole publish before anything is written.
func TestWrongDraftsAreRejectedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	c, err := queue.NewClient(conntest.New(t, redistest.Shared(t), connection.Config{PayloadLimit: 10}))
	require.NoError(t, err)
	good := queue.New[string](redistest.Name(t))
	keys := good.Keys()
	for name, wrong := range map[string]struct {
		draft queue.Draft
		says  string
	}{
		"empty name":        {queue.New[string]("").Draft("x"), "queue: empty"},
		"separator in name": {queue.New[string]("a::b").Draft("x"), "separator"},
		"nil option":        {queue.New[string]("q", nil).Draft("x"), "option"},
		"nil draft option":  {good.Draft("x", nil), "option"},
		"key of other type": {queue.New[string]("q", queue.DeduplicateBy(func(int) string { return "" })).Draft("x"), "DeduplicateBy"},
		"window":            {queue.New[string]("q", queue.DeduplicationWindow(0)).Draft("x"), "DeduplicationWindow"},
		"cap":               {queue.New[string]("q", queue.PendingCap(0, queue.FullWaits)).Draft("x"), "PendingCap"},
		"when full":         {queue.New[string]("q", queue.PendingCap(1, 9)).Draft("x"), "PendingCap"},
		"empty separator":   {queue.New[string]("q", queue.KeySeparator("")).Draft("x"), "KeySeparator"},
		"body over limit":   {good.Draft(strings.Repeat("x", 11)), "body"},
		"window of a draft": {queue.Draft{Queue: queue.Settings{Keys: keys, DeduplicationWindow: time.Nanosecond}}, "DeduplicationWindow"},
		"cap of a draft":    {queue.Draft{Queue: queue.Settings{Keys: keys, WhenFull: queue.FullDropsOldest}}, "PendingCap"},
		"tail of a draft":   {queue.Draft{Queue: queue.Settings{Keys: keys}, Tail: "x"}, "tail"},
	} {
		_, err := c.Publish(t.Context(), good.Draft("fine"), wrong.draft)
		require.ErrorIs(t, err, wakebelltype.ErrInvalid, name)
		require.ErrorContains(t, err, "message 1", name)
		require.ErrorContains(t, err, wrong.says, name)
	}
	st, err := c.Stats(t.Context(), keys)
	require.NoError(t, err)
	require.Zero(t, st.Pending)
}

func TestMisusedClientsAreErrors(t *testing.T) {
	t.Parallel()
	q := queue.New[string]("q")
	for _, c := range []*queue.Client{nil, {}} {
		_, err := q.Publish(t.Context(), c, "x")
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
		_, err = c.Stats(t.Context(), q.Keys())
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	}
	_, err := q.Publish(t.Context(), nil, "x")
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	_, err = queue.NewClient(nil)
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
}
