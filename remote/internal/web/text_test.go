package web

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"72h": 72 * time.Hour, "1m30s": 90 * time.Second, "-1s": -time.Second,
		"PT72H": 72 * time.Hour, "P3D": 72 * time.Hour, "P1W": 7 * 24 * time.Hour, "PT1H30M": 90 * time.Minute, "PT0.5S": 500 * time.Millisecond, "P1DT1S": 24*time.Hour + time.Second,
	} {
		got, err := parseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "P", "PT", "P1", "P1M", "P1Y", "P1D1W", "PT1S1H", "P1H", "PT1D", "P-1D", "P1DT", "72", "P999999999W", "P1e3D", "P1..5D"} {
		_, err := parseDuration(text)
		require.Error(t, err, text)
	}
}

func TestRoutesAreFoundByPathAndMethod(t *testing.T) {
	t.Parallel()
	r, path, _ := find("POST", "/v1/topics/a%2Fb/timers/x:y:run")
	require.NotNil(t, r)
	require.Equal(t, map[string]string{"topic": "a/b", "id": "x:y"}, path)
	r, path, _ = find("GET", "/v1/topics/t/timers/x:run")
	require.NotNil(t, r)
	require.Equal(t, "x:run", path["id"], "a GET has no verbs")
	r, _, methods := find("POST", "/v1/topics/t/timers/x%3Arun")
	require.Nil(t, r, "an escaped colon is part of the name")
	require.Equal(t, []string{"GET", "PATCH", "DELETE"}, methods)
	for _, none := range []string{"", "/", "/v1", "/v1/topics//timers", "/v1/topics/t/timers/", "/v1/topics/t/timers/x/y", "/v1/topics/%zz/timers"} {
		r, _, methods := find("GET", none)
		require.Nil(t, r, none)
		require.Empty(t, methods, none)
	}
	seen := map[string]bool{}
	for _, r := range routes {
		require.False(t, seen[r.method+r.pattern])
		seen[r.method+r.pattern] = true
	}
}
