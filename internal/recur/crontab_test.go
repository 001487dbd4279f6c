package recur

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// These are fields as Celery parses them.
func TestCrontabFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text      string
		low, high int
		want      []int
	}{
		{`"*"`, 1, 3, []int{1, 2, 3}},
		{`"*/15"`, 0, 59, []int{0, 15, 30, 45}},
		{`"*/3"`, 1, 12, []int{1, 4, 7, 10}},
		{`"*/10"`, 1, 31, []int{1, 11, 21, 31}},
		{`"fri-mon"`, 0, 6, []int{0, 1, 5, 6}},
		{`"22-2"`, 0, 23, []int{0, 1, 2, 22, 23}},
		{`"22-4/3"`, 0, 23, []int{1, 4, 22}},
		{`"1,5-7"`, 0, 23, []int{1, 5, 6, 7}},
		{`"Sunday"`, 0, 6, []int{0}},
		{`[1,15]`, 1, 31, []int{1, 15}},
		{`0`, 0, 59, []int{0}},
	} {
		bits, err := crontabField([]byte(c.text), c.low, c.high)
		require.NoError(t, err, c.text)
		var got []int
		for n := range 64 {
			if bits&(1<<n) != 0 {
				got = append(got, n)
			}
		}
		require.Equal(t, c.want, got, c.text)
	}
	for _, bad := range []string{`""`, `"1,"`, `"60"`, `"x"`, `"*/0"`, `"*/"`, `"5/2"`, `-1`, `[60]`, `[]`, `{}`, `null`, `"7"`, `true`} {
		_, err := crontabField([]byte(bad), 0, 6)
		require.Error(t, err, bad)
	}
}

func TestCrontabDaysMustAllMatch(t *testing.T) {
	t.Parallel()
	w, err := CrontabIn(Crontab{Minute: "0", Hour: "6", DayOfMonth: "13", DayOfWeek: "fri"}, time.UTC, false)
	require.NoError(t, err)
	require.Equal(t, "2026-11-13", w.Next(time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)).Format(time.DateOnly))
	never, err := CrontabIn(Crontab{DayOfMonth: "30", Month: "2"}, time.UTC, false)
	require.NoError(t, err)
	require.Zero(t, never.Next(time.Now()))
	leap, err := CrontabIn(Crontab{Minute: "0", Hour: "0", DayOfMonth: "29", Month: "2", DayOfWeek: "0"}, time.UTC, false)
	require.NoError(t, err)
	require.Equal(t, "2032-02-29", leap.Next(time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)).Format(time.DateOnly))
}

// If only one of the days is restricted, crontab and cron agree.
func TestCrontabAgainstCron(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		field := func(name string, options ...string) string { return rapid.SampledFrom(options).Draw(t, name) }
		c := Crontab{
			Minute: field("minute", "*", "*/7", "3,58", "10-20", "0"), Hour: field("hour", "*", "5", "*/6", "22-23"),
			DayOfMonth: field("day", "*", "1,31", "29", "10-12"), Month: field("month", "*", "2", "*/5"), DayOfWeek: "*",
		}
		if c.DayOfMonth == "*" {
			c.DayOfWeek = field("weekday", "*", "mon", "1-5", "0")
		}
		ours, err := CrontabIn(c, time.UTC, false)
		require.NoError(t, err)
		theirs, err := Cron(c.Minute+" "+c.Hour+" "+c.DayOfMonth+" "+c.Month+" "+c.DayOfWeek, time.UTC, false)
		require.NoError(t, err)
		from := noon.Add(time.Duration(rapid.IntRange(0, 4*365*86400).Draw(t, "from")) * time.Second)
		require.Equal(t, theirs.Next(from), ours.Next(from))
	})
}

func TestCronRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "* * * *", "* * * * * * *", "60 * * * *", "TZ=Europe/Berlin", "CRON_TZ=x * * * * *", "@every 5s", "@reboot", "* * * * 8", "x"} {
		_, err := Cron(bad, time.UTC, false)
		require.ErrorIs(t, err, ErrSyntax, bad)
	}
	for _, bad := range []string{"", "Local", "Berlin", "../etc/passwd"} {
		_, err := LoadZone(bad)
		require.ErrorIs(t, err, ErrSyntax, bad)
	}
}

func TestRelative(t *testing.T) {
	t.Parallel()
	last := time.Date(2026, 11, 21, 7, 50, 19, 667480000, time.UTC)
	for every, want := range map[time.Duration]string{
		time.Second: "07:50:20.66748", time.Minute: "07:51:00", 90 * time.Minute: "09:00:00", time.Hour: "08:00:00", 24 * time.Hour: "00:00:00",
	} {
		i := Interval{Every: every, Relative: true}
		require.Equal(t, want, i.Next(last).Format("15:04:05.999999999"))
		require.Equal(t, i.Next(i.Next(last)), i.Latest(last, i.Next(i.Next(last))))
	}
}
