package timers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	k, err := NewKeyspace(wakebelltype.Keys{})
	require.NoError(t, err)
	require.Equal(t, "timers_timeline:invoices", k.Of("invoices").Timeline)
	require.Equal(t, "timers_exchange:invoices:abc:1", k.Of("invoices").Stream("abc", 1))
	k.HashTag = true
	require.Equal(t, "timers_dead:{invoices}", k.Of("invoices").Dead)
	_, err = NewKeyspace(wakebelltype.Keys{}, Names{Dead: "x", Leases: "x"})
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	require.ErrorContains(t, err, `Leases and Dead are both "x"`)
	_, err = New(nil, wakebelltype.Keys{})
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	_, err = New(redistest.Shared(t), wakebelltype.Keys{Timeline: "x", Payloads: "x"})
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
}

// On a Cluster names without a hash tag are put in braces, and others stay as they were.
func TestKeysOnCluster(t *testing.T) {
	t.Parallel()
	for topic, want := range map[string]string{
		"invoices": "timers_timeline:{invoices}", "{invoices}": "timers_timeline:{invoices}", "a{b}c": "timers_timeline:a{b}c",
		"{}": "timers_timeline:{{}}", "}": "timers_timeline:{}}",
	} {
		k, err := NewKeyspace(wakebelltype.Keys{})
		require.NoError(t, err)
		require.Equal(t, want, k.OnCluster().Of(topic).Timeline)
	}
	own, err := NewKeyspace(wakebelltype.Keys{Timeline: "{own}timeline"})
	require.NoError(t, err)
	require.Equal(t, "{own}timeline:invoices", own.OnCluster().Of("invoices").Timeline)
	k, err := NewKeyspace(wakebelltype.Keys{})
	require.NoError(t, err)
	for key, want := range map[string]string{"timers_timeline:{a}": "a", "timers_timeline:a{b}c": "a{b}c", "timers_timeline:a": ""} {
		topic, _ := k.OnCluster().topicOf("timers_timeline", key)
		require.Equal(t, want, topic, key)
	}
	rdb := redistest.Cluster(t).Client(t)
	s, err := New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	require.NoError(t, s.Check(t.Context(), []string{"{fine}", "invoices"}))
	_, err = s.Schedule(t.Context(), "invoices", Entry{ID: "a"})
	require.NoError(t, err)
	require.EqualValues(t, 1, rdb.ZCard(t.Context(), "timers_timeline:{invoices}").Val())
	_, err = s.Schedule(t.Context(), "}x", Entry{ID: "a"})
	require.ErrorIs(t, err, wakebelltype.ErrUnsupported)
	require.ErrorContains(t, err, "rename the topic, its braces break the hash tag")
}

func TestSlots(t *testing.T) {
	t.Parallel()
	require.Equal(t, 12739, layout.SlotOf("123456789"))
	require.Equal(t, layout.SlotOf("b"), layout.SlotOf("a{b}c"))
	require.NotEqual(t, layout.SlotOf("b"), layout.SlotOf("a{}b"))
}

// TestCheck checks that the error about keys in several slots of a Cluster names
// the remedy.
func TestCheck(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t, "--cluster-enabled", "yes").Client(t)
	require.NoError(t, rdb.Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", 0, layout.Slots-1).Err())
	require.Eventually(t, func() bool { return rdb.Set(t.Context(), "x", 1, 0).Err() == nil }, 30*time.Second, 10*time.Millisecond)
	s, err := New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	err = s.Check(t.Context(), []string{"{fine}", "invoices"})
	require.ErrorIs(t, err, wakebelltype.ErrUnsupported)
	require.ErrorContains(t, err, `topic "invoices"`)
	require.ErrorContains(t, err, "set HashTag")
	require.NoError(t, s.Check(t.Context(), []string{"{fine}"}))

	s, err = New(rdb, wakebelltype.Keys{HashTag: true})
	require.NoError(t, err)
	require.NoError(t, s.Check(t.Context(), []string{"invoices"}))
	require.ErrorContains(t, s.Check(t.Context(), []string{"}"}), "rename the topic")
	out, err := s.Schedule(t.Context(), "invoices", Entry{ID: "a"})
	require.NoError(t, err)
	require.Equal(t, wakebelltype.OutcomeCreated, out[0].Outcome)

	onEach(t, func(t *testing.T, f *fixture) {
		require.NoError(t, f.Check(t.Context(), []string{"invoices"}))
		require.ErrorIs(t, f.Check(t.Context(), []string{""}), wakebelltype.ErrInvalid)
	})
}
