package tuning

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestTableIsComplete checks that the table has a row for each field of Settings
// and of its message, in the order of the fields.
func TestTableIsComplete(t *testing.T) {
	t.Parallel()
	require.Len(t, All, reflect.TypeFor[wakebelltype.Settings]().NumField())
	fields := (&messages.TopicSettings{}).ProtoReflect().Descriptor().Fields()
	require.Len(t, All, fields.Len())
	for i, row := range All {
		var s wakebelltype.Settings
		row.Set(&s, 7)
		require.False(t, reflect.ValueOf(s).Field(i).IsZero(), row.Name)
		require.EqualValues(t, 7, row.Get(&s))
		row.Set(&s, 0)
		require.Zero(t, s, "%s sets another field", row.Name)
		require.Equal(t, row.Name, string(fields.Get(i).Name()))
		require.NotEmpty(t, row.Flag)
		require.NotContains(t, row.Flag, "_")
		require.NotEmpty(t, row.Usage)
		require.NotEmpty(t, row.Option)
		require.True(t, row.Off && row.Default == 0 || row.Low <= row.Default && row.Default <= row.High, row.Name)
	}
}

func TestStoredTextsAreReadBack(t *testing.T) {
	t.Parallel()
	for _, row := range All {
		for _, v := range []int64{row.Low, row.High, row.Default, -1} {
			var s, read wakebelltype.Settings
			row.Set(&s, v)
			err := row.Read(&read, row.Text(v))
			if v == 0 || v == -1 && !row.Off {
				continue
			}
			require.NoError(t, err, "%s: %d", row.Name, v)
			require.Equal(t, s, read)
			require.NoError(t, Check(s))
		}
		var s wakebelltype.Settings
		row.Set(&s, row.High+1)
		require.ErrorIs(t, Check(s), wakebelltype.ErrInvalid)
		require.ErrorContains(t, Check(s), row.Name)
		require.ErrorIs(t, row.Read(&s, row.Text(row.High+1)), wakebelltype.ErrInvalid)
		require.Error(t, row.Read(&s, strings.Repeat("x", 3)))
	}
}

func TestOverride(t *testing.T) {
	t.Parallel()
	node := Defaults()
	node.MaxLeaseAge = time.Hour
	require.Equal(t, node, Override(node, wakebelltype.Settings{}), "zero leaves the settings of the node")
	all := wakebelltype.Settings{
		MaxConcurrent: 1, LeaseTTL: time.Second, MaxLeaseAge: time.Minute, PollingInterval: 2, MaxPollingInterval: 3,
		RetryInitial: 4, RetryLimit: 5, MaxAttempts: 6, RateLimit: 7, RatePer: 8, RateBurst: 9, MaxInFlight: 10,
		PerKey: 11, KeyRateLimit: 12, KeyRatePer: 13, KeyRateBurst: 14, FairKeys: 15,
	}
	require.Equal(t, all, Override(node, all))
	got := Override(node, wakebelltype.Settings{MaxLeaseAge: -1, PollingInterval: time.Minute, RetryInitial: 2 * time.Hour})
	require.Zero(t, got.MaxLeaseAge)
	require.Equal(t, time.Second, got.RatePer)
	node.RateLimit, node.MaxInFlight = 5, 6
	got = Override(node, wakebelltype.Settings{RateLimit: -1, MaxInFlight: -1, PollingInterval: time.Minute, RetryInitial: 2 * time.Hour})
	require.Zero(t, got.RateLimit)
	require.Zero(t, got.MaxInFlight)
	require.Equal(t, time.Minute, got.MaxPollingInterval)
	require.Equal(t, 2*time.Hour, got.RetryLimit)
}

func TestSettingsInForceHaveNoPeriodsOfLimitsThatAreOff(t *testing.T) {
	t.Parallel()
	off := wakebelltype.Settings{PerKey: 1, RatePer: 1, RateBurst: 2, KeyRatePer: 3, KeyRateBurst: 4}
	require.Equal(t, wakebelltype.Settings{PerKey: 1}, InForce(off))
	require.Equal(t, wakebelltype.Settings{PerKey: 1, FairKeys: 2}, InForce(wakebelltype.Settings{PerKey: 1, FairKeys: 2}))
	require.Zero(t, InForce(wakebelltype.Settings{FairKeys: 2}))
	on := off
	on.RateLimit, on.KeyRateLimit = 5, 6
	require.Equal(t, on, InForce(on))
}
