package life_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

const (
	numberCount = 10_000
	longEvery   = 80 // every 80th timer runs for longer than a lease: more timers than a node has slots
	nodeLease   = 8 * time.Second
	nodeLong    = 10 * time.Second
)

var numbers = wakebell.NewTopic[int]("numbers")

// numberHandler handles a timer and passes its body and attempt to done.
func numberHandler(done func(body, attempt int)) wakebell.Handler {
	return wakebell.Handle(numbers, func(ctx context.Context, timer wakebell.Timer[int]) error {
		if timer.Body%longEvery == 0 {
			select {
			case <-time.After(nodeLong):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		done(timer.Body, timer.Attempt)
		return nil
	}, wakebell.MaxConcurrent(100), wakebell.LeaseTTL(nodeLease))
}

// scheduleNumbers schedules all timers, half of them due already, the others within
// two seconds.
func scheduleNumbers(t *testing.T, c *wakebell.Client) {
	t.Helper()
	drafts := make([]wakebell.Draft, numberCount)
	for i := range drafts {
		in := time.Duration(i%2*i) * 200 * time.Microsecond
		drafts[i] = numbers.Draft(i, wakebell.ID(strconv.Itoa(i)), wakebell.In(in))
	}
	_, err := c.Schedule(t.Context(), drafts...)
	require.NoError(t, err)
}

// roll records which timers were handled.
type roll struct {
	mu      sync.Mutex
	handled map[int]int
	again   []string // deliveries after the first attempt
}

func (r *roll) note(body, attempt int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handled[body]++
	if attempt != 1 || r.handled[body] > 1 {
		r.again = append(r.again, fmt.Sprintf("%d on attempt %d", body, attempt))
	}
}

// complete waits until Redis has no timer left, and requires that each was handled
// once.
func (r *roll) complete(t *testing.T, c *wakebell.Client) {
	t.Helper()
	require.Eventually(t, func() bool { return stacktest.Count(t, c, numbers.Name()) == 0 }, time.Minute, 10*time.Millisecond)
	stacktest.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.handled) == numberCount
	})
	require.Empty(t, r.again)
	require.Empty(t, stacktest.DeadLetters(t, c, numbers.Name()))
}

func TestTwoNodesHandleEachTimerOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := &roll{handled: map[int]int{}}
	var nodes []*wakebell.System
	for range 2 {
		nodes = append(nodes, stacktest.Launch(t, stacktest.Build(t, server.Client(t), wakebell.Config{
			DrainTimeout: stacktest.Patience, Handlers: []wakebell.Handler{numberHandler(r.note)},
		})))
	}
	c := stacktest.Client(t, server.Client(t), connection.Config{})
	scheduleNumbers(t, c)
	r.complete(t, c)
	for _, node := range nodes {
		require.NoError(t, node.Stop())
		counters := node.Counters()[numbers.Name()]
		require.Equal(t, counters.Delivered, counters.Acked+counters.Released)
		require.Positive(t, counters.Acked, "both nodes must have handled timers")
		require.Zero(t, counters.Lost+counters.Superseded+counters.Cancelled)
	}
}

// nodeVariable, when set, makes this test binary a node on the Redis that it
// names; see TestMain.
const nodeVariable = "WAKEBELL_TEST_NODE"

func TestTwoProcessesHandleEachTimerOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := stacktest.Client(t, server.Client(t), connection.Config{})
	r := &roll{handled: map[int]int{}}
	shares := make([]int, 2)
	var reading sync.WaitGroup
	nodes := make([]*process, 2)
	for i := range shares {
		nodes[i] = startNode(t, server.Addr)
		out := nodes[i].out
		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan(), "the node prints a line when it is ready")
		reading.Go(func() {
			for ; lines.Scan(); shares[i]++ {
				var body, attempt int
				if _, err := fmt.Sscan(lines.Text(), &body, &attempt); err != nil {
					t.Errorf("node %d wrote %q", i, lines.Text())
					return
				}
				r.note(body, attempt)
			}
		})
	}
	scheduleNumbers(t, c)
	r.complete(t, c)
	for _, node := range nodes {
		require.NoError(t, node.in.Close())
	}
	reading.Wait()
	for _, node := range nodes {
		require.NoError(t, node.cmd.Wait())
	}
	require.Equal(t, numberCount, shares[0]+shares[1])
	require.Positive(t, min(shares[0], shares[1]), "both nodes must have handled timers")
}

// process is this test binary as a node. It prints a line when it is ready and one
// for each timer that it handled. It drains and ends when its input ends.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.Reader
}

func startNode(t *testing.T, redisAddr string) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), nodeVariable+"="+redisAddr)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return &process{cmd, in, out}
}

// runNode runs a node in a separate process until its input ends.
func runNode(redisAddr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: redisAddr, ReadTimeout: stacktest.Patience})
	defer func() { _ = rdb.Close() }() // the process ends
	var mu sync.Mutex
	conn, err := connection.New(rdb, connection.Config{Logger: stacktest.Quiet})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(stacktest.ActorSystem(), conn, wakebell.Config{
		Handlers: []wakebell.Handler{numberHandler(func(body, attempt int) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Println(body, attempt)
		})},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin) // it carries no data, only its end matters
	}()
	if err := sys.Start(ctx); err != nil {
		return err
	}
	fmt.Println("ready")
	<-ctx.Done()
	return sys.Stop()
}
