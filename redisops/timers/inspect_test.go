//go:build !race

package timers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// walk reads all pages; between is called after each.
func (f *fixture) walk(t *testing.T, filter Filter, between func(page []Timer)) []string {
	t.Helper()
	var got []string
	for {
		page, next, err := f.List(t.Context(), f.topic, filter)
		require.NoError(t, err)
		for _, timer := range page {
			got = append(got, timer.ID)
		}
		if between != nil {
			between(page)
		}
		if next == "" {
			return got
		}
		filter.After = next
	}
}

func TestListPagesThroughTies(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		names := numbered(10_000)
		f.plant(t, 5e9+0.123, names...)
		require.Equal(t, names, f.walk(t, Filter{Limit: 999}, nil))
		// The member of the cursor is removed after each page: the next page is
		// found by its place.
		got := f.walk(t, Filter{Limit: 900}, func(page []Timer) {
			if len(page) > 0 {
				_, err := f.Cancel(t.Context(), f.topic, page[len(page)-1].ID)
				require.NoError(t, err)
			}
		})
		require.Equal(t, names, got)
		// The same if the member moves.
		left := f.walk(t, Filter{Limit: 1000}, nil)
		got = f.walk(t, Filter{Limit: 400}, func(page []Timer) {
			if len(page) > 0 {
				f.plant(t, 1, page[len(page)-1].ID)
			}
		})
		require.Equal(t, left, got)
	})
}

func TestListFilters(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		names := numbered(2500)
		f.plant(t, 10, names...)
		f.plant(t, 5, "first")
		far := time.Now().Add(time.Hour)
		f.schedule(t, Entry{ID: "later", At: far})
		require.Equal(t, append([]string{"first"}, names...), f.walk(t, Filter{DueBefore: far, Limit: 1000}, nil))
		require.Equal(t, []string{"first"}, f.walk(t, Filter{DueBefore: time.Unix(10, 0)}, nil))
		require.Empty(t, f.walk(t, Filter{Leased: true}, nil))

		leases := f.Claim(t, 3).Leases
		require.Equal(t, []string{"00000", "00001", "first"}, f.walk(t, Filter{Leased: true, Limit: 2}, func(page []Timer) {
			require.LessOrEqual(t, len(page), 2)
			for _, timer := range page {
				require.True(t, timer.Running)
				require.Equal(t, 1, timer.Claims)
				require.Equal(t, timer.Due, timer.LeaseEnds)
			}
		}))
		require.Equal(t, leases[0].Activation, f.get(t, "first").Activation)

		// If few timers are leased, no others are examined.
		page, next, err := f.List(t.Context(), f.topic, Filter{Leased: true, Limit: 1})
		require.NoError(t, err)
		require.Len(t, page, 1)
		require.NotEmpty(t, next)
		require.Empty(t, f.walk(t, Filter{Leased: true, DueBefore: time.Unix(10, 0)}, nil))
		for _, bad := range []Filter{{Limit: -1}, {Limit: 1001}, {After: "%"}, {After: "eA"}, {After: "eCB5"}} {
			_, _, err = f.List(t.Context(), f.topic, bad)
			require.ErrorIs(t, err, wakebelltype.ErrInvalid)
		}
	})
}

// TestListManyLeases lists more leases than one call examines, in order, and
// without due timers.
func TestListManyLeases(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.plant(t, 10, numbered(3*claimMost)...)
		for range 3 {
			require.Len(t, f.Run(t, f.Request(3000, time.Hour)).Leases, claimMost)
		}
		f.plant(t, 5, "due")
		f.plant(t, 5e9, "later")
		for _, limit := range []int{7, 500, 1000} {
			require.Equal(t, numbered(3*claimMost), f.walk(t, Filter{Leased: true, Limit: limit}, nil))
		}
	})
}

// TestListNothingLeased checks that one call finds no leases among many pending
// timers.
func TestListNothingLeased(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.plant(t, 5e9, numbered(2500)...)
		page, next, err := f.List(t.Context(), f.topic, Filter{Leased: true})
		require.NoError(t, err)
		require.Empty(t, page)
		require.Empty(t, next)
	})
}

func TestTopics(t *testing.T) {
	t.Parallel()
	for _, tagged := range []bool{false, true} {
		onEach(t, func(t *testing.T, f *fixture) {
			keys := wakebelltype.Keys{Timeline: "tl[a-z]*?" + redistest.Name(t), HashTag: tagged}
			s, err := New(f.rdb, keys, Names{Topics: "topics-" + redistest.Name(t)})
			require.NoError(t, err)
			topics := []string{"one", "two:three", "a{b}c", "nul\x00\n"}
			for _, topic := range topics {
				// The check of key names applies to keys with the usual bases only.
				require.NoError(t, f.rdb.ZAdd(t.Context(), s.keys.Of(topic).Timeline, z(1, "x")).Err())
				require.NoError(t, s.Register(t.Context(), topic))
			}
			require.NoError(t, f.rdb.ZAdd(t.Context(), "tlxzz"+redistest.Name(t)+":other", z(1, "x")).Err())
			collect := func(page func(uint64) ([]string, uint64, error)) []string {
				var all []string
				for cursor := uint64(0); ; {
					names, next, err := page(cursor)
					require.NoError(t, err)
					all = append(all, names...)
					if cursor = next; next == 0 {
						return all
					}
				}
			}
			require.ElementsMatch(t, topics, collect(func(c uint64) ([]string, uint64, error) { return s.Topics(t.Context(), c) }))
			require.ElementsMatch(t, topics, collect(func(c uint64) ([]string, uint64, error) { return s.DiscoverTopics(t.Context(), c) }))
			_, _, err = s.DiscoverTopics(t.Context(), 7<<nodeShift)
			require.ErrorIs(t, err, wakebelltype.ErrInvalid)
			require.ErrorIs(t, s.Register(t.Context(), ""), wakebelltype.ErrInvalid)
		})
	}
}

func TestScheduleRegistersItsTopic(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.schedule(t, Entry{ID: "a"})
		require.True(t, f.rdb.SIsMember(t.Context(), f.keys.Topics, f.topic).Val())
		require.NoError(t, f.rdb.SRem(t.Context(), f.keys.Topics, f.topic).Err())
		f.schedule(t, Entry{ID: "b"})
		require.False(t, f.rdb.SIsMember(t.Context(), f.keys.Topics, f.topic).Val(), "at most once a minute")
	})
}
