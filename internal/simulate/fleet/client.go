package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/testhook"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/remote"
)

// letters is the queue of a fleet.
var letters = queue.New[string](mail)

// client is a process without Redis: it has a session with a node, over which it makes calls,
// handles timers and messages, and takes turns.
type client struct {
	fleet   *fleet
	number  int
	host    netip.Addr
	changes chan struct{} // has an element while the client starts or ends

	mu  sync.Mutex
	run *session // nil: it does not run
}

// session is a client from a start to its end.
type session struct {
	node   *node
	remote *remote.Client
	ctx    context.Context //nolint:containedctx // ends with the process
	end    context.CancelFunc
	subs   sync.WaitGroup
	web    *http.Client

	mu     sync.Mutex
	leaves context.CancelFunc // ends the subscription of errands; nil: there is none yet
}

// leave ends the subscription of errands, which begins again.
func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaves != nil {
		s.leaves()
	}
}

func newClient(f *fleet, number int) *client {
	return &client{
		fleet: f, number: number, host: netip.AddrFrom4([4]byte{10, 1, 0, byte(number + 1)}), //nolint:gosec // there are few
		changes: make(chan struct{}, 1),
	}
}

func (c *client) name() string { return fmt.Sprintf("client-%d", c.number) }

// running returns the session that runs, or nil.
func (c *client) running() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.run
}

func (c *client) become(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.run = s
}

// start connects the client to a node, unless it runs. It tries until it succeeds.
func (c *client) start(to *node) {
	c.changes <- struct{}{}
	defer func() { <-c.changes }()
	if c.running() != nil {
		return
	}
	c.fleet.net.revive(c.host)
	conn, err := connection.WithoutRedis(connection.Config{Logger: quiet})
	if err != nil {
		c.fleet.check(err, "configure a client")
		return
	}
	cfg := remote.DialConfig{Config: remote.Config{Token: secret}, TurnTTL: leaseTTL}
	testhook.Connect(&cfg.Config, c.fleet.net.of(c.host))
	s := &session{node: to, web: c.fleet.webClient(c.host)}
	for {
		var err error
		if s.remote, err = remote.Dial(c.fleet.ctx, to.address(), conn, cfg); err == nil {
			break
		}
		select {
		case <-c.fleet.ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
	s.ctx, s.end = context.WithCancel(c.fleet.ctx)
	topic := remote.Subscription{Topic: orders, Name: c.name(), Credits: 3}
	s.subs.Go(func() { c.subscribe(s, topic, bodyOf) })
	messages := remote.Subscription{Queue: letters.Keys(), Name: c.name(), Credits: 3}
	s.subs.Go(func() { c.subscribe(s, messages, letters.Read) })
	own := remote.Subscription{Topic: c.errands(), Name: c.name(), Credits: 3}
	s.subs.Go(func() { c.subscribe(s, own, bodyOf) })
	s.subs.Go(func() { c.pull(s) })
	c.become(s)
}

// bodyOf returns the body of a timer, which is a JSON string.
func bodyOf(l *messages.Lease) (string, error) { return strings.Trim(string(l.GetBody()), `"`), nil }

// subscribe handles a topic or queue until the session ends.
func (c *client) subscribe(s *session, of remote.Subscription, read func(*messages.Lease) (string, error)) {
	name := of.Topic + of.Queue.Name
	for s.ctx.Err() == nil {
		over, cancel := context.WithCancel(s.ctx)
		if name == c.errands() {
			s.mu.Lock()
			s.leaves = cancel
			s.mu.Unlock()
		}
		err := s.remote.Subscribe(over, of, func(ctx context.Context, l *messages.Lease) error {
			body, err := read(l)
			if err != nil {
				return err
			}
			return c.fleet.handle(ctx, subjectOf(name, l.GetId()), body, int(l.GetAttempt()), c.name(), "", s.node.name())
		})
		cancel()
		if s.ctx.Err() == nil {
			c.fleet.check(err, "subscribe to "+name)
			<-time.After(time.Second / 2)
		}
	}
}

// crash ends the client like the death of its process.
func (c *client) crash() { c.stop(true) }

// close ends the client as a deployment does.
func (c *client) close() { c.stop(false) }

func (c *client) stop(dead bool) {
	c.changes <- struct{}{}
	defer func() { <-c.changes }()
	s := c.running()
	if s == nil {
		return
	}
	c.become(nil)
	if dead {
		c.fleet.net.kill(c.host)
	}
	s.end()
	s.subs.Wait()
	s.remote.Close()
	s.web.CloseIdleConnections()
	c.fleet.net.leave(c.host)
}

// stopped reports whether an error is that of a process that ended meanwhile.
func stopped(err error) bool { return errors.Is(err, context.Canceled) }
