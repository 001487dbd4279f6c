// Package faultproxy is a TCP proxy between a Redis client and its server that
// drops, delays and repeats commands and replies on demand. Tests use it to make
// the network fail at a chosen moment.
//
// It parses the Redis protocol to separate commands and replies. After a
// connection has subscribed, its bytes are passed through without parsing.
package faultproxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Fate says what the proxy does with a command and its reply. The zero value
// passes both on.
type Fate struct {
	drop, lose, reset bool
	hold              <-chan struct{}
	delay             time.Duration
	again             func() // called after the command was repeated; nil: it is not repeated
	after             time.Duration
}

// Drop closes the connection instead of passing the command on: the server does
// not receive it.
func Drop() Fate { return Fate{drop: true} }

// Lose closes the connection instead of passing the reply on: the server has
// run the command.
func Lose() Fate { return Fate{lose: true} }

// Reset is Lose with a TCP reset instead of a close.
func Reset() Fate { return Fate{lose: true, reset: true} }

// Hold passes the reply on when the channel until is closed.
func Hold(until <-chan struct{}) Fate { return Fate{hold: until} }

// Delay passes the reply on after d.
func Delay(d time.Duration) Fate { return Fate{delay: d} }

// Again passes command and reply on, and repeats the command after d on a new
// connection, as happens to a request that was stuck in a dead socket. The second
// reply is dropped; done is called when it has arrived or the attempt has failed.
func Again(d time.Duration, done func()) Fate { return Fate{again: done, after: d} }

// Rule decides the fate of a command before it is passed on. The first word is the
// name of the command, as the client wrote it. For a transaction the rule receives
// the words of all its commands. It is called concurrently.
type Rule func(command []string) Fate

// Proxy is a running proxy. Its methods may be called concurrently.
type Proxy struct {
	// Addr is the host:port that clients connect to.
	Addr string

	raw      bool // passes bytes without parsing them
	listener net.Listener
	done     context.Context // ends with the proxy
	serving  sync.WaitGroup

	mu       sync.Mutex
	upstream string
	rule     Rule
	cut      bool
	silent   chan struct{} // closed by Speak; nil: not silent
	conns    map[net.Conn]struct{}
}

// Start runs a proxy to the server at upstream until the end of the test.
func Start(t testing.TB, upstream string) *Proxy {
	t.Helper()
	return start(t, upstream, false)
}

// StartRaw is Start for any protocol. It ignores rules; Cut and Silence work.
func StartRaw(t testing.TB, upstream string) *Proxy {
	t.Helper()
	return start(t, upstream, true)
}

func start(t testing.TB, upstream string, raw bool) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("faultproxy: %v", err)
	}
	done, end := context.WithCancel(context.WithoutCancel(t.Context()))
	p := &Proxy{
		Addr: l.Addr().String(), upstream: upstream, raw: raw, listener: l, done: done,
		conns: map[net.Conn]struct{}{},
	}
	p.serving.Go(p.accept)
	t.Cleanup(func() {
		end()
		_ = l.Close() // the test is over
		p.Cut()
		p.serving.Wait()
	})
	return p
}

// Redirect makes later connections reach another server. Those that are open stay at theirs,
// as when a name or an address moves.
func (p *Proxy) Redirect(upstream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = upstream
}

func (p *Proxy) server() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upstream
}

// SetRule sets the rule for later commands; nil passes all of them on.
func (p *Proxy) SetRule(r Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = r
}

// Cut closes all connections, and new ones until Mend.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.conns {
		_ = c.Close()
	}
}

// Mend ends a Cut.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

// Silence holds the bytes of both directions, on present and new connections,
// until Speak. The connections stay open.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent == nil {
		p.silent = make(chan struct{})
	}
}

// Speak ends a Silence and passes the held bytes on.
func (p *Proxy) Speak() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent != nil {
		close(p.silent)
		p.silent = nil
	}
}

// write writes data when the proxy is not silent.
func (p *Proxy) write(to net.Conn, data []byte) error {
	for {
		p.mu.Lock()
		silent := p.silent
		p.mu.Unlock()
		if silent == nil {
			_, err := to.Write(data)
			return err
		}
		select {
		case <-silent:
		case <-p.done.Done():
			return p.done.Err()
		}
	}
}

// writer writes to a connection with Proxy.write. It hides the ReadFrom method of
// the connection, with which io.Copy would bypass the silence.
type writer struct {
	proxy *Proxy
	to    net.Conn
}

func (w writer) Write(data []byte) (int, error) {
	if err := w.proxy.write(w.to, data); err != nil {
		return 0, err
	}
	return len(data), nil
}

// reader hides the WriteTo method of a connection, as writer does.
type reader struct{ io.Reader }

func (p *Proxy) fate(command []string) Fate {
	p.mu.Lock()
	rule := p.rule
	p.mu.Unlock()
	if rule == nil {
		return Fate{}
	}
	return rule(command)
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.serving.Go(func() {
			defer p.close(client)
			if !p.admit(client) {
				return
			}
			server, err := net.Dial("tcp", p.server())
			if err != nil {
				return
			}
			defer p.close(server)
			switch {
			case !p.admit(server):
			case p.raw:
				p.pass(client, server, client, server)
			default:
				p.serve(client, server)
			}
		})
	}
}

// admit registers a connection for Cut. It reports false while the proxy is cut.
func (p *Proxy) admit(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) close(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close()
}

// serve passes on commands and transactions until either side closes. It reads the
// next one after the reply to the last one.
func (p *Proxy) serve(client, server net.Conn) {
	commands, replies := bufio.NewReader(client), bufio.NewReader(server)
	for {
		u, err := readUnit(commands)
		if err != nil {
			return
		}
		fate := p.fate(u.words)
		if fate.drop {
			return
		}
		if fate.again != nil {
			p.serving.Go(func() { defer fate.again(); p.repeat(u, fate.after) })
		}
		if p.write(server, u.raw) != nil {
			return
		}
		if strings.HasSuffix(strings.ToLower(u.words[0]), "subscribe") {
			p.pass(client, server, commands, replies)
			return
		}
		reply, err := u.readReplies(replies)
		if fate.reset {
			_ = client.(*net.TCPConn).SetLinger(0) // if it fails, the connection is closed without a reset
		}
		if err != nil || fate.lose || !p.wait(fate) {
			return
		}
		if p.write(client, reply) != nil {
			return
		}
	}
}

// wait waits for the hold or the delay of a fate. It reports false if the proxy
// ended first.
func (p *Proxy) wait(fate Fate) bool {
	var after <-chan time.Time
	switch {
	case fate.hold == nil && fate.delay <= 0:
		return true
	case fate.delay > 0:
		after = time.After(fate.delay)
	}
	select {
	case <-fate.hold:
		return true
	case <-after:
		return true
	case <-p.done.Done():
		return false
	}
}

// repeat sends a unit on a new connection after a delay.
func (p *Proxy) repeat(u unit, after time.Duration) {
	if !p.wait(Fate{delay: max(after, 1)}) {
		return
	}
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	defer p.close(server)
	if !p.admit(server) {
		return
	}
	if _, err := server.Write(u.raw); err != nil {
		return
	}
	_, _ = u.readReplies(bufio.NewReader(server)) // the server has run it then
}

// pass copies both directions until either side closes.
func (p *Proxy) pass(client, server net.Conn, commands, replies io.Reader) {
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(writer{p, server}, reader{commands})
		_ = server.Close()
	})
	_, _ = io.Copy(writer{p, client}, reader{replies})
	_ = client.Close()
	up.Wait()
}
