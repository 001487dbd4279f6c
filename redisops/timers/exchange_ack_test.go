package timers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestManyAcks checks that lua/exchange.lua judges each of many acks by its own
// token, although it looks up the timers of a token together.
func TestManyAcks(t *testing.T) {
	t.Parallel()
	const claimed = 20
	none := func(*testing.T, *fixture, []exchange.Settlement) {}
	cases := map[string]struct {
		acks  int
		spoil func(t *testing.T, f *fixture, acks []exchange.Settlement)
		want  []exchange.Refusal
		left  int // timers
	}{
		"of all":    {acks: claimed, spoil: none},
		"of a half": {acks: claimed / 2, spoil: none, left: claimed / 2},
		"of some":   {acks: 9, spoil: none, left: 11},
		"one is superseded": {
			acks: claimed, left: 1, want: []exchange.Refusal{{Index: 3, Reason: exchange.Superseded}},
			spoil: func(t *testing.T, f *fixture, acks []exchange.Settlement) {
				t.Helper()
				f.schedule(t, Entry{ID: acks[3].ID, In: time.Hour, Payload: []byte("new")})
			},
		},
		"one is cancelled": {
			acks: claimed, want: []exchange.Refusal{{Index: 5, Reason: exchange.Cancelled}},
			spoil: func(t *testing.T, f *fixture, acks []exchange.Settlement) {
				t.Helper()
				_, err := f.Cancel(t.Context(), f.topic, acks[5].ID)
				require.NoError(t, err)
			},
		},
		"one has a token that is no number": {
			acks: claimed, left: 1, want: []exchange.Refusal{{Index: 8, Reason: exchange.Lost}},
			spoil: func(_ *testing.T, _ *fixture, acks []exchange.Settlement) { acks[8].Token = "(1" },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				var ids []string
				for i := range claimed {
					ids = append(ids, fmt.Sprintf("%02d", i))
				}
				f.due(t, ids...)
				var acks []exchange.Settlement
				for _, l := range f.Claim(t, claimed).Leases[:c.acks] {
					acks = append(acks, storetest.Verdict(exchange.Ack, l))
				}
				c.spoil(t, f, acks)
				require.Equal(t, c.want, f.Settle(t, acks...).Refused)
				require.EqualValues(t, c.left, f.rdb.ZCard(t.Context(), f.key.Timeline).Val())
				require.EqualValues(t, c.left, f.rdb.HLen(t.Context(), f.key.Payloads).Val(), "payloads leave with their timers")
			})
		})
	}
}

func TestTimerThatIsAckedTwiceTakesNoOtherWithIt(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		ids := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
		f.due(t, ids...)
		var acks []exchange.Settlement
		for _, l := range f.Claim(t, len(ids)).Leases {
			acks = append(acks, storetest.Verdict(exchange.Ack, l))
		}
		acks[7] = acks[2]
		f.Settle(t, acks...)
		require.EqualValues(t, 1, f.rdb.ZCard(t.Context(), f.key.Timeline).Val())
		require.True(t, f.get(t, "h").Running)
	})
}
