// Package stock_test tests that a program on an unmodified protoactor-go, which
// imports only package messages of Wakebell, loses no timer: in bursts, after minutes
// of silence, and when the node or the program is restarted.
package stockpeer_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/faultproxy"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stockpeer/peer"
	"github.com/wakebell/wakebell/remote"
)

var (
	stockFor  = flag.Duration("stock.for", 0, "duration of TestStockPeers; 0: one round with a short silence")
	stockSeed = flag.Uint64("stock.seed", 1, "seed of its random choices")
)

const (
	token = "a-token-of-sixteen-bytes"
	// silence is longer than it takes a gRPC server with default settings to refuse
	// pings at intervals of 10 s.
	silence = 45 * time.Second
	// patience bounds the waits for another process.
	patience = time.Minute
)

var quiet = slog.New(slog.DiscardHandler)

// roleVar is the environment variable that makes a process of this test binary a node
// or a peer.
const roleVar = "WAKEBELL_STOCK_ROLE"

func TestMain(m *testing.M) {
	role, rest, _ := strings.Cut(os.Getenv(roleVar), " ")
	args := strings.Fields(rest)
	switch role {
	case "":
		redistest.Main(m)
	case "node":
		if err := serve(args[0], args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "peer":
		o := peer.Options{Node: args[0], Token: token, Topic: args[1], Name: "stock", Address: args[2], Cluster: args[3] == "cluster"}
		if len(args) > 4 {
			o.Reached = args[4]
		}
		peer.Run(o, os.Stdin, os.Stdout)
	}
}

// serve runs a node.
func serve(redisAddr, address string) error {
	actors := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	conn, err := connection.New(redis.NewClient(&redis.Options{Addr: redisAddr}), connection.Config{Logger: quiet})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(actors, conn, wakebell.Config{})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return remote.Run(context.Background(), sys, remote.Config{
		Address: address, Tokens: map[string]string{token: "orders"}, HandlerOptions: []wakebell.HandlerOption{wakebell.LeaseTTL(3 * time.Second)},
	})
}

// fleet is a node and a peer.
type fleet struct {
	t      testing.TB
	kind   string // of the peer
	topic  string
	nodeAt string
	peerAt string
	link   *faultproxy.Proxy // through which the node connects to the peer
	node   *process
	peer   *process
	bursts int
}

func newFleet(t testing.TB, kind string) *fleet {
	t.Helper()
	f := &fleet{t: t, kind: kind, topic: redistest.Name(t), nodeAt: redistest.Address(t), peerAt: redistest.Address(t)}
	f.link = faultproxy.StartRaw(t, f.peerAt)
	f.startNode()
	f.startPeer()
	return f
}

func (f *fleet) startNode() {
	f.t.Helper()
	f.node = start(f.t, "node", redistest.SharedAddr(f.t), f.nodeAt)
	f.node.wait("ready", 1)
}

func (f *fleet) startPeer() {
	f.t.Helper()
	f.peer = start(f.t, "peer", f.nodeAt, f.topic, f.peerAt, f.kind, f.link.Addr)
	f.peer.wait("subscribed", 1)
}

// burst schedules timers and waits until all are handled.
func (f *fleet) burst(count int) {
	f.t.Helper()
	f.bursts++
	prefix := fmt.Sprint("burst-", f.bursts)
	f.peer.send("schedule", prefix, fmt.Sprint(count))
	f.peer.wait(fmt.Sprint("done schedule ", prefix, " ", count), 1)
	f.handled(prefix, count)
}

func (f *fleet) handled(prefix string, count int) {
	f.t.Helper()
	for i := range count {
		f.peer.wait(fmt.Sprint("handled ", prefix, "-", i), 1)
	}
}

// restartNode kills the node and starts another one.
func (f *fleet) restartNode() {
	f.t.Helper()
	subscribed := f.peer.printed("subscribed")
	f.node.kill()
	f.startNode()
	f.peer.wait("subscribed", subscribed+1)
}

// restartPeer kills the peer during a burst and starts another one, which handles the
// rest.
func (f *fleet) restartPeer() {
	f.t.Helper()
	f.bursts++
	prefix, before := fmt.Sprint("burst-", f.bursts), f.peer
	before.send("schedule", prefix, "500")
	before.wait(fmt.Sprint("done schedule ", prefix, " 500"), 1)
	before.kill()
	f.startPeer()
	for i := range 500 {
		line := fmt.Sprint("handled ", prefix, "-", i)
		require.Eventually(f.t, func() bool { return before.printed(line)+f.peer.printed(line) > 0 }, patience, 5*time.Millisecond, line)
	}
}

// cut breaks the link from the node to the peer, but not the link from the peer to the
// node, so that the peer does not notice.
func (f *fleet) cut() {
	f.link.Cut()
	f.link.Mend()
}

func TestStockPeers(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"remote", "cluster"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, kind)
			if *stockFor > 0 {
				f.randomActions(rand.New(rand.NewPCG(*stockSeed, uint64(len(kind))))) // by seed
				return
			}
			for _, count := range []int{1, 32, 500, 5000} {
				f.burst(count)
			}
			<-time.After(silence)
			f.burst(100)
			f.cut()
			f.burst(10)
			f.restartNode()
			f.burst(100)
			f.restartPeer()
			f.burst(100)
			f.settled()
		})
	}
}

// The answers to these requests together exceed the frame size of a gRPC server with
// default settings.
func TestStockPeerReadsLargeAnswers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "remote")
	sys := f.client()
	topic := wakebell.NewTopic[string](f.topic)
	_, err := topic.Schedule(t.Context(), sys, strings.Repeat("x", 900<<10), wakebell.ID("large"), wakebell.In(time.Hour))
	require.NoError(t, err)
	f.peer.send("get", "large", "50")
	f.peer.wait("done get large 50", 1)
	require.Zero(t, f.peer.printed("parted"))
	f.burst(10)
}

func (f *fleet) client() *wakebell.Client {
	f.t.Helper()
	c, err := wakebell.NewClient(conntest.New(f.t, redistest.Shared(f.t), connection.Config{}))
	require.NoError(f.t, err)
	return c
}

// settled waits until Redis has no timer of the topic.
func (f *fleet) settled() {
	f.t.Helper()
	c := f.client()
	require.Eventually(f.t, func() bool {
		st, err := c.Stats(f.t.Context(), f.topic)
		return err == nil && st.Total == 0 && st.Dead == 0
	}, patience, 20*time.Millisecond)
}

// randomActions runs random actions until the time is over.
func (f *fleet) randomActions(rng *rand.Rand) {
	f.t.Helper()
	for began := time.Now(); time.Since(began) < *stockFor; {
		switch step := rng.IntN(6); step {
		case 0:
			f.restartNode()
		case 1:
			f.restartPeer()
		case 2:
			f.cut()
		case 3:
			d := time.Duration(30+rng.IntN(150)) * time.Second
			f.t.Logf("%v: silent for %v", f.kind, d)
			<-time.After(d)
		}
		n := []int{1, 31, 32, 100, 1000, 5000}[rng.IntN(6)]
		f.burst(n)
		f.t.Logf("%v: a burst of %d, %d in all", f.kind, n, f.bursts)
	}
	f.settled()
}

// The code blocks of docs/remote.md are part of the program.
func TestDocumentedLinesAreInProgram(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(text)
	}
	_, section, found := strings.Cut(read("../../docs/remote.md"), "## From an unmodified protoactor-go\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	program := read("peer/peer.go") + read("peer/actors.go")
	blocks := 0
	for part := range strings.SplitSeq(section, "```go\n") {
		if block, _, ok := strings.Cut(part, "```\n"); ok {
			blocks++
			require.Contains(t, program, block)
		}
	}
	require.Equal(t, 5, blocks)
}
