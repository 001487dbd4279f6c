package timers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestKeyedCallIsDoneOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		ctx, key := t.Context(), NewKey("me", "k", []byte("schedule a and b"))
		entries := []Entry{{ID: "a", Payload: []byte("1"), In: time.Hour}, {ID: "b", Payload: []byte("2"), In: time.Hour, Once: time.Minute}}
		first, err := f.scheduleKeyed(ctx, key, entries...)
		require.NoError(t, err)
		_, err = f.Cancel(ctx, f.topic, "a")
		require.NoError(t, err)
		again, err := f.scheduleKeyed(ctx, key, entries...)
		require.NoError(t, err)
		require.Equal(t, first, again)
		_, err = f.Get(ctx, f.topic, "a")
		require.ErrorIs(t, err, wakebelltype.ErrNotFound, "it was not scheduled again")

		_, err = f.scheduleKeyed(ctx, NewKey("me", "k", []byte("something else")), entries...)
		require.ErrorIs(t, err, wakebelltype.ErrKeyUsed)
		other, err := f.scheduleKeyed(ctx, NewKey("you", "k", []byte("schedule a and b")), entries...)
		require.NoError(t, err)
		require.Equal(t, wakebelltype.OutcomeCreated, other[0].Outcome, "the key of another owner is a different key")

		cancel := NewKey("me", "c", []byte("cancel"))
		for range 2 {
			found, err := f.CancelKeyed(ctx, f.topic, cancel, "a", "absent")
			require.NoError(t, err)
			require.Equal(t, []wakebelltype.Presence{wakebelltype.PresencePending, wakebelltype.PresenceAbsent}, found)
		}
	})
}

func TestKeyIsKeptForDayInSlotOfItsTopic(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	_, err := f.scheduleKeyed(t.Context(), NewKey("me", "k", nil), Entry{ID: "a", In: time.Hour})
	require.NoError(t, err)
	keys, err := f.rdb.Keys(t.Context(), f.key.Keyed+":*").Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	life, err := f.rdb.PTTL(t.Context(), keys[0]).Result()
	require.NoError(t, err)
	require.InDelta(t, KeyLife.Hours(), life.Hours(), 1)

	tagged, err := NewKeyspace(wakebelltype.Keys{HashTag: true})
	require.NoError(t, err)
	require.Contains(t, tagged.Of("x").Keyed, "{x}")
}

func TestKeyThatHoldsSomethingElse(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	key := NewKey("me", "k", nil)
	require.NoError(t, f.rdb.HSet(t.Context(), f.key.Keyed+":"+key.name+":0", "x", "y").Err())
	_, err := f.scheduleKeyed(t.Context(), key, Entry{ID: "a", In: time.Hour})
	require.ErrorIs(t, err, wakebelltype.ErrWrongType)
	_, err = f.Get(t.Context(), f.topic, "a")
	require.ErrorIs(t, err, wakebelltype.ErrNotFound, "nothing was written")
}
