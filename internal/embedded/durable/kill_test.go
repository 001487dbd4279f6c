package durable

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/journal"
)

var kills = flag.Int("kills", 8, "how often TestKilledProcessLosesNoAcknowledgedWrite kills")

// childDir makes a process of this test binary write to the directory until it is killed.
const childDir = "WAKEBELL_TEST_STORE"

const writers = 4

// child prints a line with the writer and the number of each acknowledged write.
func child(dir string) int {
	mode, _ := strconv.Atoi(os.Getenv(childDir + "_SYNC"))
	s, err := Open(dir, Options{Logger: quiet(), Sync: journal.Sync(mode), snapshotAfter: 100_000})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var each sync.WaitGroup
	var out sync.Mutex
	for w := range writers {
		each.Go(func() {
			rdb := s.Client()
			defer func() { _ = rdb.Close() }()
			for {
				n, err := rdb.Eval(context.Background(), step2, []string{fmt.Sprint("n", w), fmt.Sprint("h", w)}, strings.Repeat("x", 200)).Int64()
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				out.Lock()
				fmt.Printf("%d %d\n", w, n)
				out.Unlock()
			}
		})
	}
	each.Wait()
	return 1
}

// step2 writes two keys, which always agree.
const step2 = `local n = redis.call('INCR', KEYS[1])
redis.call('HSET', KEYS[2], n % 100, ARGV[1])
redis.call('HSET', KEYS[2], 'n', n)
return n`

// TestKilledProcessLosesNoAcknowledgedWrite kills a process again and again while it writes.
// make embedded-kills does it 1,000 times.
func TestKilledProcessLosesNoAcknowledgedWrite(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]journal.Sync{"always": journal.Always, "everysec": journal.EverySec} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var acked [writers]int64
			for range *kills {
				killOnce(t, dir, mode, &acked)
				s, err := Open(dir, Options{Logger: quiet()})
				require.NoError(t, err)
				rdb := clientOf(t, s)
				for w := range writers {
					n := number(t, rdb.Get(t.Context(), fmt.Sprint("n", w)))
					require.GreaterOrEqual(t, n, acked[w])
					if n > 0 {
						require.Equal(t, n, number(t, rdb.HGet(t.Context(), fmt.Sprint("h", w), "n")), "a script is stored as a whole")
					}
				}
				require.NoError(t, rdb.Close())
				require.NoError(t, s.Close())
			}
			t.Logf("%d kills, acknowledged %v", *kills, acked)
		})
	}
}

func number(t *testing.T, c *redis.StringCmd) int64 {
	t.Helper()
	n, err := c.Int64()
	if err != redis.Nil { //nolint:errorlint // as go-redis returns it
		require.NoError(t, err)
	}
	return n
}

// killOnce runs a process until it has acknowledged some writes, and notes them.
func killOnce(t *testing.T, dir string, mode journal.Sync, acked *[writers]int64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, fmt.Sprintf("%s_SYNC=%d", childDir, mode))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	left := 1 + rand.IntN(200) //nolint:gosec // not a secret
	for lines.Scan() {
		var w int
		var n int64
		if _, err := fmt.Sscanf(lines.Text(), "%d %d", &w, &n); err != nil {
			continue // the last line may lack its end
		}
		acked[w] = max(acked[w], n)
		if left--; left == 0 {
			require.NoError(t, cmd.Process.Kill())
		}
	}
	_, _ = io.Copy(io.Discard, out)
	require.Error(t, cmd.Wait())
	require.LessOrEqual(t, left, 0, stderr.String())
}
