package queue

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// running lists all messages that are held, in pages.
func (f *fixture) running(t *testing.T, limit int) (leased, unleased []string) {
	t.Helper()
	for next, more := "", true; more; more = next != "" {
		page, cursor, err := f.MessagesAfter(t.Context(), true, next, limit)
		require.NoError(t, err)
		for _, m := range page {
			require.True(t, m.Running)
			if m.Deadline.IsZero() {
				unleased = append(unleased, string(m.Payload))
			} else {
				leased = append(leased, string(m.Payload))
			}
		}
		next = cursor
	}
	return leased, unleased
}

// TestMessagesWithoutLeaseAreListed checks that what a dead consumer with AtMostOnce held
// is listed behind the leases, in pages of any size.
func TestMessagesWithoutLeaseAreListed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		once := f.holder(SourceOptions{AtMostOnce: true})
		f.put(t, "a", "b", "c", "d", "e", "f")
		require.Len(t, once.Claim(t, 2).Leases, 2)
		require.Len(t, f.Claim(t, 3).Leases, 3)
		require.NoError(t, f.rdb.LMove(t.Context(), f.keys.pending, f.keys.processing, "right", "left").Err(), "as Python does")
		for limit := 1; limit < 8; limit++ {
			leased, unleased := f.running(t, limit)
			require.ElementsMatch(t, []string{"c", "d", "e"}, leased)
			require.Equal(t, []string{"a", "b", "f"}, unleased)
		}
		held, err := f.Messages(t.Context(), true, 4, 1)
		require.NoError(t, err)
		require.Equal(t, "b", string(held[0].Payload), "a number counts the messages without a lease too")
	})
}

// TestSettledMessageIsNotListedWithoutLease checks that a message that was settled in the
// middle of a long list, which keeps it for a while, is not listed, and that a message
// without a lease is found behind many leases.
func TestSettledMessageIsNotListedWithoutLease(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		const n = 3 * 512
		texts := make([]string, n)
		for i := range texts {
			texts[i] = fmt.Sprint(i)
		}
		f.put(t, texts...)
		var l []exchange.Lease
		for len(l) < n {
			l = append(l, f.Claim(t, 512).Leases...)
		}
		f.put(t, "once")
		require.Len(t, f.holder(SourceOptions{AtMostOnce: true}).Claim(t, 1).Leases, 1)
		for _, lease := range l[n/2 : n/2+40] {
			require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Ack, lease)).Refused)
		}
		require.NotZero(t, f.rdb.SCard(t.Context(), f.keys.gone).Val())
		leased, unleased := f.running(t, 100)
		require.Len(t, leased, n-40)
		require.Equal(t, []string{"once"}, unleased)
	})
}

// TestCursorOfMessagesWithoutLeaseOutlivesSettlements checks that a listing goes on behind
// its last message when those before it were settled and others were claimed.
func TestCursorOfMessagesWithoutLeaseOutlivesSettlements(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		once := f.holder(SourceOptions{AtMostOnce: true})
		f.put(t, "a", "b", "c", "d", "e")
		leases := once.Claim(t, 4).Leases
		page, next, err := f.MessagesAfter(t.Context(), true, "", 2)
		require.NoError(t, err)
		require.Equal(t, "b", string(page[1].Payload))
		require.Empty(t, once.Settle(t, storetest.Verdict(exchange.Ack, leases[0])).Refused)
		f.put(t, "lease")
		require.Len(t, f.Claim(t, 2).Leases, 2)
		page, next, err = f.MessagesAfter(t.Context(), true, next, 10)
		require.NoError(t, err)
		require.Empty(t, next)
		require.Len(t, page, 2)
		require.Equal(t, "c", string(page[0].Payload))
		require.Equal(t, "d", string(page[1].Payload))
	})
}
