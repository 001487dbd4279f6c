// Package faultproxy puts a TCP proxy between a Redis client and its server
// that loses, holds and repeats what passes on demand, so that tests can show
// what a client makes of a network that fails at the worst moment.
//
// It understands as much of the protocol as it takes to tell one command and
// one reply from the next. A connection that subscribes is passed through
// unseen from then on.
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

// Fate is what becomes of a command and its reply. The zero value passes both
// on.
type Fate struct {
	drop, lose, reset bool
	hold              <-chan struct{}
	delay             time.Duration
	again             func() // called once the command was repeated; nil: it is not
	after             time.Duration
}

// Drop closes the connection instead of passing the command on: the server
// never gets it.
func Drop() Fate { return Fate{drop: true} }

// Lose closes the connection instead of passing the reply on: the server has
// run the command.
func Lose() Fate { return Fate{lose: true} }

// Reset is Lose with a connection that is reset instead of closed.
func Reset() Fate { return Fate{lose: true, reset: true} }

// Hold passes the reply on once until is closed.
func Hold(until <-chan struct{}) Fate { return Fate{hold: until} }

// Delay passes the reply on after d.
func Delay(d time.Duration) Fate { return Fate{delay: d} }

// Again passes command and reply on, and sends the command once more d later,
// on a connection of its own, as a request does that was stuck in a dead socket.
// Nobody gets the reply to that; done is called when it has come, or will not.
func Again(d time.Duration, done func()) Fate { return Fate{again: done, after: d} }

// Rule decides the fate of a command before it is passed on; the name of the
// command comes first, as the client wrote it. Of a transaction it is given the
// words of all commands, one after the other. It is called from many goroutines
// at once.
type Rule func(command []string) Fate

// Proxy is one proxy. Its methods may be called from any goroutine.
type Proxy struct {
	// Addr is the host:port that clients connect to.
	Addr string

	upstream string
	unseen   bool // passes what is no Redis
	listener net.Listener
	done     context.Context // ends with the proxy
	serving  sync.WaitGroup

	mu     sync.Mutex
	rule   Rule
	cut    bool
	silent chan struct{} // closed by Speak; nil: it is not silent
	conns  map[net.Conn]struct{}
}

// Start runs a proxy to the server at upstream until the end of the test.
func Start(t testing.TB, upstream string) *Proxy {
	t.Helper()
	return start(t, upstream, false)
}

// StartUnseen is Start for any protocol: it has no use for a Rule, only for Cut
// and Silence.
func StartUnseen(t testing.TB, upstream string) *Proxy {
	t.Helper()
	return start(t, upstream, true)
}

func start(t testing.TB, upstream string, unseen bool) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("faultproxy: %v", err)
	}
	done, end := context.WithCancel(context.WithoutCancel(t.Context()))
	p := &Proxy{
		Addr: l.Addr().String(), upstream: upstream, unseen: unseen, listener: l, done: done,
		conns: map[net.Conn]struct{}{},
	}
	p.serving.Go(p.accept)
	t.Cleanup(func() {
		end()
		_ = l.Close() // nothing is lost with it
		p.Cut()
		p.serving.Wait()
	})
	return p
}

// SetRule has r decide from now on; nil passes everything.
func (p *Proxy) SetRule(r Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = r
}

// Cut closes all connections, and those that are made until Mend.
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

// Silence holds what comes from either side, on connections that are there and
// on new ones, until Speak: they are neither closed nor answered.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent == nil {
		p.silent = make(chan struct{})
	}
}

// Speak ends a Silence: what was held is passed on.
func (p *Proxy) Speak() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent != nil {
		close(p.silent)
		p.silent = nil
	}
}

// write passes bytes on once the proxy is not silent.
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

// writer is a connection that is written to through the proxy's silence. It
// hides that the connection reads by itself.
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

// reader hides that a connection writes by itself.
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
			server, err := net.Dial("tcp", p.upstream)
			if err != nil {
				return
			}
			defer p.close(server)
			switch {
			case !p.admit(server):
			case p.unseen:
				p.pass(client, server, client, server)
			default:
				p.serve(client, server)
			}
		})
	}
}

// admit notes a connection, so that Cut finds it.
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

// serve passes one command or transaction after another until either side ends.
// It reads none before the last one is answered.
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
			_ = client.(*net.TCPConn).SetLinger(0) // what the close does otherwise is as good
		}
		if err != nil || fate.lose || !p.held(fate) {
			return
		}
		if p.write(client, reply) != nil {
			return
		}
	}
}

// held waits as long as the fate says; false: the proxy ended first.
func (p *Proxy) held(fate Fate) bool {
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

// repeat sends a unit after a while, on a connection of its own.
func (p *Proxy) repeat(u unit, after time.Duration) {
	if !p.held(Fate{delay: max(after, 1)}) {
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
	_, _ = u.readReplies(bufio.NewReader(server)) // so that it was run
}

// pass copies both ways until either side ends.
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
