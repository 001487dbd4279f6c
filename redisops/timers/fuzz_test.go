package timers

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// FuzzReadHint checks that any message on the channel is read or ignored.
func FuzzReadHint(f *testing.F) {
	for _, text := range []string{
		"due 1500000 1795246719.123", "due 0 0", "check 1795246719.123 id with spaces", "control 1.5", "",
		"due 99999999999999999999 1", "due -1 1", "check nan x", "due 1", "control inf",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, ok := readHint("topic", text)
		if ok {
			require.Equal(t, "topic", h.Source)
			require.GreaterOrEqual(t, h.In, time.Duration(0))
		}
		_, ok = readHint("", text)
		require.False(t, ok, "without a topic")
	})
}

func FuzzReadScheduled(f *testing.F) {
	f.Add("c 1795246719.123 -")
	f.Add("s 1795246719.1229999 1.5e+300")
	f.Add("o inf -inf")
	f.Add("  ")
	f.Fuzz(func(t *testing.T, line string) {
		out, err := readScheduled([]Entry{{ID: "id"}}, line+"\n", 0)
		if err == nil {
			require.Equal(t, "id", out[0].ID)
			require.NotEmpty(t, out[0].Outcome.String())
		}
	})
}

// FuzzReadControl checks that a control that was written by hand is within its
// bounds or rejected.
func FuzzReadControl(f *testing.F) {
	f.Add("max_concurrent", "20", "1795246719.123")
	f.Add("max_lease_age", "0s", "")
	f.Add("lease_ttl", "-1h", "nan")
	f.Add("retry_limit", "999999999999h", "inf")
	f.Fuzz(func(t *testing.T, name, text, paused string) {
		c, err := readControl("key", map[string]string{name: text, "paused": paused}, time.Time{})
		if err == nil && c.Settings.RetryInitial == 0 {
			require.NoError(t, tuning.Check(c.Settings))
		}
	})
}

func FuzzReadDeadLetter(f *testing.F) {
	f.Add("id\npayload\nclaims", "x\ny\n3")
	f.Add("activation\nat", "1795246719.123\nnan")
	f.Fuzz(func(t *testing.T, names, values string) {
		var fields []string
		value := strings.Split(values, "\n")
		for i, name := range strings.Split(names, "\n") {
			if fields = append(fields, name); i < len(value) {
				fields = append(fields, value[i])
			}
		}
		d := readDeadLetter("1-0", fields)
		require.Equal(t, "1-0", d.Entry)
	})
}

func FuzzReadStats(f *testing.F) {
	f.Add("1795246719.123 5 2 1 3 3 1 1", "1795246700.5", "")
	f.Add("1 -5 2 99 1000000 3 1 1", "-inf", "x")
	f.Fuzz(func(t *testing.T, numbers, oldest, paused string) {
		var list []any
		for _, n := range strings.Fields(numbers) {
			list = append(list, n)
		}
		_, _ = readStats(append(list, oldest, paused)) // an error is fine, a panic is not
	})
}

// FuzzCursor checks that any cursor of a caller is read or rejected.
func FuzzCursor(f *testing.F) {
	f.Add("1795246719.123", "id", "")
	f.Add("nan", "x", "")
	f.Add("", "", "bm90IG9uZQ")
	f.Fuzz(func(t *testing.T, score, id, foreign string) {
		_, _, _ = Cursor(foreign).read() // an error is fine, a panic is not
		_, err := scripts.ReadScore(score)
		at, after, failed := newCursor(score, id).read()
		if score == "" || err != nil {
			return
		}
		require.NoError(t, failed)
		require.Equal(t, []string{score, id}, []string{at, after})
	})
}
