package gates_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// BenchmarkGateInside takes empty turns at one gate within one process.
func BenchmarkGateInside(b *testing.B) {
	for _, contenders := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("contenders=%d", contenders), func(b *testing.B) {
			rdb, name := redistest.Start(b).Client(b), redistest.Name(b)
			g := stacktest.GatesOn(b, rdb, gate.Config{})
			var left atomic.Int64
			left.Store(int64(b.N))
			var group sync.WaitGroup
			b.ResetTimer()
			for range contenders {
				group.Go(func() {
					for left.Add(-1) >= 0 {
						if err := g.With(b.Context(), name, func(context.Context, uint64) error { return nil }); err != nil {
							b.Error(err)
						}
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
			b.StopTimer()
			info, err := rdb.InfoMap(b.Context(), "commandstats").Result()
			require.NoError(b, err)
			var calls, usec int
			_, err = fmt.Sscanf(info["Commandstats"]["cmdstat_evalsha"], "calls=%d,usec=%d", &calls, &usec)
			require.NoError(b, err)
			b.ReportMetric(float64(calls)/float64(b.N), "calls/turn")
			b.ReportMetric(float64(usec)/float64(b.N), "redis-µs/turn")
		})
	}
}

// contenderVariable, when set, makes this test binary a contender of the
// benchmarks: "address gate hold turns"; see TestMain.
const contenderVariable = "WAKEBELL_TEST_CONTENDER"

// runContender takes turns at a gate and prints when it acquired and released each.
// It begins when it reads a line from its input.
func runContender(spec string) error {
	var addr, name, hold string
	var turns int
	if _, err := fmt.Sscan(spec, &addr, &name, &hold, &turns); err != nil {
		return err
	}
	keep, err := time.ParseDuration(hold)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = rdb.Close() }() // the process ends
	conn, err := connection.New(rdb, connection.Config{Logger: stacktest.Quiet})
	if err != nil {
		return err
	}
	g, err := gate.New(conn, gate.Config{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := g.With(ctx, name+"-warm-up", func(context.Context, uint64) error { return nil }); err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	stamps := make([]int64, 0, 2*turns)
	for range turns {
		err := g.With(ctx, name, func(context.Context, uint64) error {
			stamps = append(stamps, time.Now().UnixNano())
			if keep > 0 {
				<-time.After(keep)
			}
			stamps = append(stamps, time.Now().UnixNano())
			return nil
		})
		if err != nil {
			return err
		}
	}
	out := bufio.NewWriter(os.Stdout)
	for i := 0; i < len(stamps); i += 2 {
		fmt.Fprintln(out, stamps[i], stamps[i+1]) //nolint:errcheck // the reader counts the lines
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return g.Close()
}

// contend runs contenders as processes and returns when each turn was acquired and
// released, in order.
func contend(b *testing.B, contenders int, hold time.Duration, turns int) (stamps [][2]int64) {
	b.Helper()
	self, err := os.Executable()
	require.NoError(b, err)
	name := strconv.FormatInt(time.Now().UnixNano(), 36)
	type contender struct {
		cmd   *exec.Cmd
		out   *bufio.Scanner
		begin func()
	}
	var all []contender
	for range contenders {
		cmd := exec.CommandContext(b.Context(), self)
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %v %d", contenderVariable, redistest.SharedAddr(b), name, hold, turns))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		require.NoError(b, err)
		out, err := cmd.StdoutPipe()
		require.NoError(b, err)
		require.NoError(b, cmd.Start())
		lines := bufio.NewScanner(out)
		require.True(b, lines.Scan())
		all = append(all, contender{cmd, lines, func() { _, _ = in.Write([]byte("go\n")) }})
	}
	b.ResetTimer()
	for _, c := range all {
		c.begin()
	}
	for _, c := range all {
		for c.out.Scan() {
			var s [2]int64
			_, err := fmt.Sscan(c.out.Text(), &s[0], &s[1])
			require.NoError(b, err)
			stamps = append(stamps, s)
		}
		require.NoError(b, c.cmd.Wait())
	}
	b.StopTimer()
	require.Len(b, stamps, contenders*turns)
	slices.SortFunc(stamps, func(x, y [2]int64) int { return int(x[0] - y[0]) })
	return stamps
}

// BenchmarkGateHandOff measures the time from the end of a turn to the beginning of
// the next, in another process, with contenders that hold the turn for 5 ms.
func BenchmarkGateHandOff(b *testing.B) {
	for _, contenders := range []int{2, 8} {
		b.Run(fmt.Sprintf("contenders=%d", contenders), func(b *testing.B) {
			turns := max(b.N/contenders, 3)
			stamps := contend(b, contenders, 5*time.Millisecond, turns)
			// No contender waits for the last turns.
			stamps = stamps[:len(stamps)-contenders]
			var gaps []int64
			for i := 1; i < len(stamps); i++ {
				gaps = append(gaps, stamps[i][0]-stamps[i-1][1])
			}
			slices.Sort(gaps)
			b.ReportMetric(float64(gaps[len(gaps)/2])/1e6, "ms-p50")
			b.ReportMetric(float64(gaps[len(gaps)*99/100])/1e6, "ms-p99")
			b.ReportMetric(float64(gaps[0])/1e6, "ms-least")
		})
	}
}

// BenchmarkGateAcross takes empty turns at one gate, each in another process.
func BenchmarkGateAcross(b *testing.B) {
	for _, contenders := range []int{2, 8} {
		b.Run(fmt.Sprintf("contenders=%d", contenders), func(b *testing.B) {
			stamps := contend(b, contenders, 0, max(b.N/contenders, 3))
			first, last := stamps[0][0], stamps[len(stamps)-1][1]
			b.ReportMetric(float64(len(stamps))/time.Duration(last-first).Seconds(), "turns/s")
		})
	}
}
