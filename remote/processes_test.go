package remote_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// The tests start this binary as separate processes. The environment selects their
// role.

const roleVar = "WAKEBELL_REMOTE_ROLE"

func init() {
	role, rest, _ := strings.Cut(os.Getenv(roleVar), " ")
	if role == "" {
		return
	}
	var err error
	switch args := strings.Fields(rest); role {
	case "node":
		err = beNode(args[0], args[1])
	case "actor":
		err = beActor(args[0], args[1])
	case "asker":
		err = beAsker(args[0], args[1], args[2])
	case "office":
		err = beOffice(args[0], args[1], args[2])
	case "waiter":
		err = beWaiter(args[0], args[1])
	case "reminded":
		err = beReminded(args[0], args[1], len(args) > 2)
	case "attacked":
		err = beAttacked(args[0])
	case "honest":
		err = beHonest(args[0], args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// beNode serves a System until it is killed.
func beNode(redisAddr, address string) error {
	rdb := redis.NewClient(&redis.Options{Addr: redisAddr})
	conn, err := connection.New(rdb, connection.Config{Logger: quiet})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(actorSystem(), conn, wakebell.Config{
		Gates: gate.Config{LeaseTTL: nodeTurnLease},
	})
	if err != nil {
		return err
	}
	cfg := withToken()
	cfg.Address = address
	cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.LeaseTTL(2 * time.Second)}
	fmt.Println("ready")
	return remote.Run(context.Background(), sys, cfg)
}

// behindRemote is a system behind protoactor's own remote.
func behindRemote(port int) *actor.ActorSystem {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	premote.NewRemote(system, premote.Configure("127.0.0.1", port,
		premote.WithEndpointWriterQueueSize(1024),
		premote.WithDialOptions(grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, s grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
				return s(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+secret), d, cc, m, o...)
			})))).Start()
	return system
}

// beActor is an actor behind protoactor's own remote that subscribes to a topic, and
// prints and acknowledges its leases.
func beActor(address, topic string) error {
	system := behindRemote(0)
	gateway := actor.NewPID(address, "wakebell/gateway")
	ended := make(chan struct{})
	pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *actor.Started:
			c.Watch(gateway)
			c.Request(gateway, &messages.SubscribeRequest{Request: 1, Topic: topic, Subscriber: "actor", Credits: 10})
		case *messages.SubscribeResponse:
			c.Request(gateway, &messages.ScheduleRequest{Topic: topic, Id: "its-own", When: &messages.ScheduleRequest_In{In: durationpb.New(0)}})
			fmt.Println("subscribed")
		case *messages.Error:
			fmt.Println("error", m.GetMessage())
		case *messages.Leases:
			verdicts := &messages.Verdicts{Topic: topic, Subscriber: "actor"}
			for _, l := range m.GetLeases() {
				fmt.Println("lease", l.GetId())
				if l.GetId() == "stop" {
					c.Stop(c.Self())
					continue
				}
				if l.GetId() == "keep" {
					continue
				}
				verdicts.Verdicts = append(verdicts.Verdicts, &messages.Verdict{Id: l.GetId(), Kind: &messages.Verdict_Ack{Ack: l.Ack()}})
			}
			c.Send(gateway, verdicts)
		case *actor.Stopped:
			close(ended)
		}
	}))
	_ = pid
	<-ended
	<-time.After(time.Hour) // the process remains after its actor has stopped
	return nil
}

// child is a separate process.
type child struct {
	cmd   *exec.Cmd
	mu    sync.Mutex
	lines map[string]int
}

func spawn(t testing.TB, role string, args ...string) *child {
	t.Helper()
	c := &child{lines: map[string]int{}}
	c.cmd = exec.Command(os.Args[0]) //nolint:gosec // this binary
	c.cmd.Env = append(os.Environ(), roleVar+"="+role+" "+strings.Join(args, " "))
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.read(out)
	}()
	t.Cleanup(func() {
		c.kill()
		<-done
	})
	return c
}

func (c *child) read(out io.Reader) {
	var text strings.Builder
	b := make([]byte, 4096)
	for {
		n, err := out.Read(b)
		text.Write(b[:n])
		for {
			line, rest, ok := strings.Cut(text.String(), "\n")
			if !ok {
				break
			}
			c.mu.Lock()
			c.lines[line]++
			c.mu.Unlock()
			text.Reset()
			text.WriteString(rest)
		}
		if err != nil {
			return
		}
	}
}

func (c *child) said(line string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines[line]
}

// after returns the rest of the line with a prefix, or nothing.
func (c *child) after(begin string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for line := range c.lines {
		if rest, ok := strings.CutPrefix(line, begin); ok {
			return rest
		}
	}
	return ""
}

// kill ends the process with SIGKILL.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// An actor behind protoactor's own remote subscribes and is killed. The next actor
// receives its timers.
func TestActorOfAnotherProcess(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.HandlerOptions = []wakebell.HandlerOption{wakebell.LeaseTTL(2 * time.Second)}
	n := serve(t, cfg)
	topic := n.topic.Name()
	put := func(id string) {
		_, err := n.topic.Schedule(t.Context(), n.Client(), "x", wakebell.ID(id))
		require.NoError(t, err)
	}
	empty := func() bool {
		st, err := n.Client().Stats(t.Context(), topic)
		return err == nil && st.Total == 0
	}
	first := spawn(t, "actor", n.server.Address(), topic)
	eventually(t, func() bool { return first.said("lease its-own") > 0 }, "it schedules and gets it")
	for i := range 100 {
		put(fmt.Sprint(i))
	}
	eventually(t, empty)
	put("keep")
	eventually(t, func() bool { return first.said("lease keep") > 0 })
	first.kill()
	began := time.Now()
	put("later")
	second := spawn(t, "actor", n.server.Address(), topic)
	eventually(t, func() bool { return second.said("lease later") > 0 })
	eventually(t, func() bool { return second.said("lease keep") > 0 }, "it came back by expiry")
	t.Logf("back %v after kill -9, with a lease of 2 s", time.Since(began).Round(time.Millisecond))

	// The leases of an actor that stops are released after a short delay.
	put("stop")
	eventually(t, func() bool { return second.said("lease stop") > 0 })
	third := spawn(t, "actor", n.server.Address(), topic)
	eventually(t, func() bool { return third.said("lease stop") > 0 })
	n.alive(t)
}

// Nothing is lost when the serving node is killed: calls wait for its successor, and
// the subscriber reconnects.
func TestServingNodeIsKilled(t *testing.T) {
	t.Parallel()
	const timers = 200
	redisAddr := redistest.SharedAddr(t)
	address := deadAddress(t)
	first := spawn(t, "node", redisAddr, address)
	eventually(t, func() bool { return first.said("ready") == 1 })
	c, err := remote.Dial(t.Context(), address, conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{
		Config:   remote.Config{Token: secret},
		DeadLink: time.Minute,
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	var handled sync.Map
	subscribe(t, c, remote.Subscription{Topic: topic.Name(), Name: "s", Credits: 20}, func(_ context.Context, l *messages.Lease) error {
		handled.Store(l.GetId(), true)
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	node := first
	for i := range timers {
		if i%80 == 40 {
			node.kill()
			began := time.Now()
			node = spawn(t, "node", redisAddr, address)
			_, err := topic.Schedule(ctx, c, "x", wakebell.ID("after"))
			require.NoError(t, err)
			t.Logf("the next call succeeds %v after kill -9 of the node", time.Since(began).Round(time.Millisecond))
		}
		_, err := topic.Schedule(ctx, c, "x", wakebell.ID(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	eventually(t, func() bool {
		for i := range timers {
			if _, ok := handled.Load(fmt.Sprint(i)); !ok {
				return false
			}
		}
		st, err := c.Stats(ctx, topic.Name())
		return err == nil && st.Total == 0
	})
}
