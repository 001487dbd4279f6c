package durable

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
)

// Bounds of a command, as those of Redis.
const (
	maxArguments = 1 << 20
	maxArgument  = 512 << 20 // bytes
)

var errProtocol = errors.New("not a command of the Redis protocol")

// session is a connection.
type session struct {
	store *Store
	conn  net.Conn
	in    *bufio.Reader
	out   *output
	peer  *server.Peer

	// Transactions are queued here: miniredis would not show what they execute.
	queueing bool
	failed   bool // a command was refused instead of queued
	queue    [][]string
}

// sessions are the connections that are open.
type sessions struct {
	mu      sync.Mutex
	closed  bool
	open    map[*session]struct{}
	running sync.WaitGroup
}

var errClosed = errors.New("the embedded store is closed")

// serve serves a connection until it is closed.
func (s *Store) serve(conn net.Conn) error {
	out := newOutput(s.log, conn)
	c := &session{store: s, conn: conn, in: bufio.NewReader(conn), out: out, peer: server.NewPeer(bufio.NewWriter(out))}
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	if s.sessions.closed {
		return errClosed
	}
	s.sessions.open[c] = struct{}{}
	s.sessions.running.Go(out.send)
	s.sessions.running.Go(func() {
		c.run()
		out.close()
		_ = conn.Close() // the client has gone, or is to notice that
		s.sessions.mu.Lock()
		defer s.sessions.mu.Unlock()
		delete(s.sessions.open, c)
	})
	return nil
}

// close closes the connections after the replies that can be sent.
func (s *sessions) close() {
	s.mu.Lock()
	s.closed = true
	for c := range s.open {
		c.out.finish()
		_ = c.conn.Close() // nothing is lost
	}
	s.mu.Unlock()
	s.running.Wait()
}

func (c *session) run() {
	defer c.forget()
	for !c.peer.Closed() {
		args, err := c.read()
		if err != nil {
			if errors.Is(err, errProtocol) {
				c.answer("-ERR Protocol error: " + err.Error())
			}
			return
		}
		if len(args) > 0 {
			c.handle(args)
		}
	}
}

// forget ends the subscriptions, which miniredis keeps with the connection.
func (c *session) forget() {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.out.close()
	for _, name := range []string{"UNSUBSCRIBE", "PUNSUBSCRIBE"} {
		c.store.server.Dispatch(c.peer, []string{name})
	}
}

func (c *session) answer(reply string) {
	_, _ = c.out.Write([]byte(reply + "\r\n")) // never fails
}

func (c *session) handle(args []string) {
	name := strings.ToUpper(args[0])
	switch name {
	case "MULTI":
		if c.queueing {
			c.answer("-ERR MULTI calls can not be nested")
			return
		}
		c.queueing, c.failed, c.queue = true, false, nil
		c.answer("+OK")
	case "EXEC", "DISCARD":
		c.end(name)
	case "WATCH":
		c.refuse("-ERR the embedded store does not support WATCH; use a script")
	case "UNWATCH":
		c.answer("+OK")
	case "SELECT":
		if len(args) == 2 && args[1] == "0" {
			c.answer("+OK")
			return
		}
		c.refuse("-ERR the embedded store has only database 0")
	default:
		switch {
		case c.queueing && c.store.kindOf(name, args[1:]) == refused:
			c.refuse("-" + refusal(name))
		case c.queueing:
			c.queue = append(c.queue, args)
			c.answer("+QUEUED")
		default:
			c.store.execute(c, [][]string{args}, false)
		}
	}
}

func (c *session) refuse(reply string) {
	c.failed = c.queueing
	c.answer(reply)
}

// end ends a transaction.
func (c *session) end(name string) {
	queue, failed := c.queue, c.failed
	if !c.queueing {
		c.answer(fmt.Sprintf("-ERR %s without MULTI", name))
		return
	}
	c.queueing, c.queue = false, nil
	switch {
	case name == "DISCARD":
		c.answer("+OK")
	case failed:
		c.answer("-EXECABORT Transaction discarded because of previous errors.")
	default:
		c.store.execute(c, queue, true)
	}
}

// read reads a command.
func (c *session) read() ([]string, error) {
	n, err := c.number('*', maxArguments)
	if err != nil {
		return nil, err
	}
	var args []string
	for range n {
		size, err := c.number('$', maxArgument)
		if err != nil {
			return nil, err
		}
		var b strings.Builder
		if _, err := io.CopyN(&b, c.in, size); err != nil {
			return nil, err
		}
		if end, err := c.in.ReadString('\n'); err != nil {
			return nil, err
		} else if end != "\r\n" {
			return nil, errProtocol
		}
		args = append(args, b.String())
	}
	return args, nil
}

func (c *session) number(begins byte, most int64) (int64, error) {
	line, err := c.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return 0, errProtocol
	}
	if err != nil {
		return 0, err
	}
	if line[0] != begins {
		return 0, errProtocol
	}
	n, err := strconv.ParseInt(strings.TrimRight(string(line[1:]), "\r\n"), 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, errProtocol
	}
	return n, nil
}
