package main

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseInfo(t *testing.T) {
	t.Parallel()
	fields := parseInfo("# CPU\r\nused_cpu_sys:1.25\r\nused_cpu_user:2.5\r\nredis_version:7.0.15\r\n\r\n# Stats\r\ntotal_commands_processed:12\r\n")
	require.Equal(t, map[string]float64{"used_cpu_sys": 1.25, "used_cpu_user": 2.5, "total_commands_processed": 12}, fields)
}

func TestParseProcStat(t *testing.T) {
	t.Parallel()
	require.Equal(t, 290*clockTick, parseProcStat("cpu  100 20 30 4000 500 60 70 10 0 0"), "all but idle and waiting for disks")
	require.Zero(t, parseProcStat("cpu0 1 2"))
	require.Zero(t, parseProcStat("cpu  a b c d e f g h"))
}

func TestBetween(t *testing.T) {
	t.Parallel()
	before := reading{at: time.Unix(0, 0), client: time.Second, redis: time.Second, machine: 10 * time.Second, commands: 100, mallocs: 1000}
	after := reading{at: time.Unix(2, 0), client: 2 * time.Second, redis: 1500 * time.Millisecond, machine: 12 * time.Second, commands: 600, mallocs: 4000}
	s := between(before, after, 1000)
	require.InDelta(t, 500, s[rate], 1e-9)
	require.InDelta(t, 1000, s[clientUS], 1e-9)
	require.InDelta(t, 500, s[redisUS], 1e-9)
	require.InDelta(t, 0.5, s[commandsPer], 1e-9)
	require.InDelta(t, 3, s[allocsPer], 1e-9)
	require.InDelta(t, 0.25, busyShare(time.Second, 2*time.Second, 2), 1e-9)
	require.Zero(t, busyShare(-time.Second, time.Second, 2), "clocks of different steps")
}

func TestDigits(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{
		0: "0", 1.2345: "1.23", 12.345: "12.3", 123.4: "123", 123456: "123456", 0.012345: "0.0123", 0.000000012: "0.000000", -2.5: "-2.50",
	} {
		require.Equal(t, want, digits(x))
	}
	require.Equal(t, "–", digits(math.NaN()))
}
