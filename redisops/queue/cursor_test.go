package queue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/wakebelltype"
)

// after lists the payloads of the messages after a cursor, and the cursors.
func (f *fixture) after(t testing.TB, cursor string, limit int) (payloads, cursors []string) {
	t.Helper()
	page, _, err := f.MessagesAfter(t.Context(), false, cursor, limit)
	require.NoError(t, err)
	for _, m := range page {
		payloads, cursors = append(payloads, string(m.Payload)), append(cursors, m.Cursor)
	}
	return payloads, cursors
}

func TestCursorOfMessagesOutlivesClaimsAndPublishing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put(t, "a", "b", "c", "d", "e")
		seen, cursors := f.after(t, "", 3)
		require.Equal(t, []string{"a", "b", "c"}, seen)

		f.Claim(t, 2) // a and b
		f.put(t, "f")
		rest, _ := f.after(t, cursors[2], 10)
		require.Equal(t, []string{"d", "e", "f"}, rest)

		f.Claim(t, 2) // c, which is that of the cursor, and d
		rest, _ = f.after(t, cursors[2], 10)
		require.Equal(t, []string{"e", "f"}, rest)
	})
}

func TestCursorOfDeadLettersOutlivesTheirDeletion(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.makeDead(t, 0, "a", "b", "c", "d", "e")
		page, next, err := f.DeadLettersAfter(t.Context(), "", 3)
		require.NoError(t, err)
		require.Equal(t, page[2].Cursor, next)
		rest := func() (payloads []string) {
			left, last, err := f.DeadLettersAfter(t.Context(), next, 10)
			require.NoError(t, err)
			require.Empty(t, last)
			for _, l := range left {
				payloads = append(payloads, string(l.Payload))
			}
			return payloads
		}
		require.Equal(t, []string{"d", "e"}, rest())
		for _, gone := range [][]wakebelltype.QueueDeadLetter{page[:1], page[2:], page[1:2]} {
			n, err := f.DiscardLetters(t.Context(), gone...)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Equal(t, []string{"d", "e"}, rest())
		}
		f.makeDead(t, 5, "f")
		require.Equal(t, []string{"d", "e", "f"}, rest())
	})
}

func TestCursorOfAnotherListingIsInvalid(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		for _, cursor := range []string{"x", "-", "1-", "-x", "-1"} {
			_, _, err := f.MessagesAfter(t.Context(), false, cursor, 1)
			require.ErrorIs(t, err, wakebelltype.ErrInvalid, cursor)
			_, _, err = f.DeadLettersAfter(t.Context(), cursor, 1)
			require.ErrorIs(t, err, wakebelltype.ErrInvalid, cursor)
		}
	})
}
