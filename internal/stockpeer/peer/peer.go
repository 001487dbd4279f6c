// Package peer is a program that uses Wakebell from an unmodified protoactor-go: with
// its packages remote and cluster, and package messages.
package peer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/test"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
)

// Options configures a peer.
type Options struct {
	Node    string // the address of the node
	Token   string
	Topic   string
	Name    string // of the subscriber
	Address string // to listen on, host:port
	Reached string // host:port to which the node connects, if it is another
	Cluster bool   // the peer is a cluster member, and its subscriber a virtual actor
}

// bearer sends the token with each stream that protoactor's remote opens.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity is false for a node on loopback; true elsewhere.
func (bearer) RequireTransportSecurity() bool { return false }

// Run runs the program. It reads commands and prints events.
func Run(o Options, commands io.Reader, out io.Writer) {
	var mu sync.Mutex
	say := func(line string) { // at once: a lease is acknowledged after its line is printed
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.WriteString(out, line+"\n") // the reader may have ended
	}
	p := &program{Options: o, gateway: actor.NewPID(o.Node, "wakebell/gateway"), say: say}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	p.start(system)
	scheduler := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &scheduler{program: p, open: map[uint64]asked{}} }))
	for scanner := bufio.NewScanner(commands); scanner.Scan(); {
		system.Root.Send(scheduler, strings.Fields(scanner.Text()))
	}
}

// program has the state that the actors share.
type program struct {
	Options
	gateway *actor.PID
	say     func(line string)
}

// start starts the remote or the cluster member, and spawns the subscriber.
func (p *program) start(system *actor.ActorSystem) {
	host, port := "127.0.0.1", 0
	if _, err := fmt.Sscanf(p.Address, "127.0.0.1:%d", &port); err != nil {
		panic(err)
	}
	options := []remote.ConfigOption{remote.WithCallOptions(grpc.PerRPCCredentials(bearer(p.Token)))}
	if p.Reached != "" {
		options = append(options, remote.WithAdvertisedHost(p.Reached))
	}
	config := remote.Configure(host, port, options...)
	props := actor.PropsFromProducer(func() actor.Actor { return &subscriber{program: p, began: time.Now()} })
	if !p.Cluster {
		remote.NewRemote(system, config).Start()
		system.Root.Spawn(props)
		return
	}
	member := cluster.New(system, cluster.Configure("orders", test.NewTestProvider(test.NewInMemAgent()), disthash.New(), config,
		cluster.WithKinds(cluster.NewKind("subscriber", props))))
	member.StartMember()
	go func() { // a virtual actor starts with its first message
		for {
			if pid := member.Get("of-"+p.Topic, "subscriber"); pid != nil {
				system.Root.Send(pid, awake{})
			}
			<-time.After(time.Second)
		}
	}()
}
