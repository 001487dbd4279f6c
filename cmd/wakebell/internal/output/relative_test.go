package output

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRelative(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)
	for gap, want := range map[time.Duration]string{
		0:                              "now",
		400 * time.Millisecond:         "now",
		-400 * time.Millisecond:        "now",
		time.Second:                    "in 1 s",
		-5 * time.Second:               "5 s ago",
		119 * time.Second:              "in 119 s",
		2 * time.Minute:                "in 2 min",
		-4*time.Minute + time.Second:   "4 min ago",
		3*time.Hour - time.Millisecond: "in 3 h",
		-47 * time.Hour:                "47 h ago",
		48 * time.Hour:                 "in 2 d",
		-89 * 24 * time.Hour:           "89 d ago",
		90 * 24 * time.Hour:            "2031-04-02",
		-1000 * 24 * time.Hour:         "2028-04-07",
	} {
		require.Equal(t, want, Relative(now.Add(gap), now), gap)
	}
	require.Empty(t, Relative(time.Time{}, now))
	screen := Screen{Relative: true, now: func() time.Time { return now }}
	require.Equal(t, "in 1 s", screen.Time(now.Add(time.Second)))
	require.Equal(t, "2031-01-02T03:04:05Z", Screen{}.Time(now))
}

func TestDurationsHaveDaysAndWeeks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1d": 24 * time.Hour, "1w2d3h": (9*24 + 3) * time.Hour, "1.5d": 36 * time.Hour,
		"-1d": -24 * time.Hour, "0": 0, "2w": 14 * 24 * time.Hour, "1.5h": 90 * time.Minute, "15000w": 15000 * 7 * 24 * time.Hour,
	} {
		d, err := ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, d, text)
	}
	for _, text := range []string{"", "d", "1", "1 d", "1y", "16000w", "9999999999999999999999d", "1d2"} {
		_, err := ParseDuration(text)
		require.ErrorContains(t, err, "is not a duration such as", text)
	}
}
