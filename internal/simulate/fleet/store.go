package fleet

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/embedded"
)

// store is the Redis of a fleet: the embedded server behind a listener of the network, which
// can go away and lose requests and replies. It keeps its data.
type store struct {
	net    *network
	server *embedded.Server
	at     netip.AddrPort
	links  sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil: it is away
	loss     float64      // the share of reads from a connection that are lost with it
	random   *rand.Rand
}

func newStore(n *network, host netip.Addr, random *rand.Rand) *store {
	s := &store{net: n, server: embedded.Start(), at: netip.AddrPortFrom(host, 6379), random: random}
	n.quick[host] = true
	s.comeBack()
	return s
}

// comeBack listens, if the server is away.
func (s *store) comeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return
	}
	l, err := s.net.listen(s.at.String())
	if err != nil {
		panic(err) // no other program listens there
	}
	s.listener = l
	s.links.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.links.Go(func() { s.relay(c) })
		}
	})
}

// goAway closes the listener and breaks all connections.
func (s *store) goAway() {
	s.mu.Lock()
	l := s.listener
	s.listener = nil
	s.mu.Unlock()
	if l != nil {
		_ = l.Close() // it returns nil
	}
	s.net.reset(s.at.Addr(), netip.Addr{})
}

// lose sets the share of what is lost.
func (s *store) lose(share float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loss = share
}

func (s *store) lost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loss > 0 && s.random.Float64() < s.loss
}

// relay passes a connection on to the server.
func (s *store) relay(c net.Conn) {
	up, err := s.server.Options().Dialer(nil, "", "")
	if err != nil {
		_ = c.Close() // the server is closed
		return
	}
	var both sync.WaitGroup
	both.Go(func() { s.pass(c, up, c) })
	both.Go(func() { s.pass(up, c, c) })
	both.Wait()
}

// pass copies one direction. What is lost breaks the connection: the client does not know
// whether its commands were carried out.
func (s *store) pass(from, to, client net.Conn) {
	defer func() {
		_, _ = from.Close(), to.Close() // the other direction ends too
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if s.lost() {
			client.(*conn).reset()
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// client returns a client of the server in a process with this host. The path to Redis has no
// delay and is never silent: go-redis holds mutexes while it dials and greets the server, and virtual
// time stands still while a goroutine waits for a mutex.
func (s *store) client(host netip.Addr) *redis.Client {
	o := embedded.ClientOptions(s.net.of(host).Dial)
	o.Addr, o.ReadTimeout = s.at.String(), 3*time.Second
	o.DialerRetries = 1
	return redis.NewClient(o)
}

func (s *store) close() {
	s.goAway()
	s.links.Wait()
	s.server.Close()
}
