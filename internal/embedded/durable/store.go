// Package durable runs an in-process imitation of Redis (miniredis) that stores what is
// written in a directory.
//
// Commands are executed one at a time. What each of them, each script and each
// transaction writes becomes one record of the log (internal/journal), and a reply is
// sent when all that was executed before it is stored as Options.Sync says.
package durable

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/internal/journal"
)

// Options configure a store.
type Options struct {
	Sync   journal.Sync
	Logger *slog.Logger // nil: slog.Default()
	// Socket is the path of a Unix socket with which other processes of this user use the
	// store; empty: none.
	Socket string

	// For tests: the size in bytes of a log after which a snapshot is taken; 0: 64 MiB.
	snapshotAfter int64
	now           func() int64 // in Unix milliseconds
}

// Store is a server with a directory.
type Store struct {
	log    *journal.Log
	logger *slog.Logger
	after  int64
	now    func() int64
	unlock func() error

	// mu is held while a command is executed.
	mu     sync.Mutex
	m      *miniredis.Miniredis
	server *server.Server
	clock  int64 // that commands see, in Unix milliseconds; see follow
	unit   unit
	ranges ranges
	full   bool // the last command that writes was refused
	closed bool

	// snapshots is held while a snapshot is taken.
	snapshots sync.Mutex
	due       chan struct{} // the log became large
	stop      chan struct{}
	running   sync.WaitGroup

	sessions sessions
	listener net.Listener
}

// Open opens a directory, which is created if it does not exist. Errors are a
// *journal.LockedError, a *journal.DamageError, or journal.ErrVersion.
func Open(dir string, o Options) (*Store, error) {
	fs, err := journal.Dir(dir)
	if err != nil {
		return nil, err
	}
	unlock, err := journal.Lock(dir, holder())
	if err != nil {
		return nil, err
	}
	s, err := open(fs, o)
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	s.unlock = unlock
	if o.Socket != "" {
		if err := s.listen(o.Socket); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func open(fs journal.FS, o Options) (*Store, error) {
	s := &Store{
		logger: o.Logger, after: o.snapshotAfter, now: o.now, unlock: func() error { return nil },
		due: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	if s.logger == nil {
		s.logger = slog.Default()
	}
	if s.now == nil {
		s.now = func() int64 { return time.Now().UnixMilli() }
	}
	s.ranges = ranges{sets: map[string]*ordered{}, least: orderedFrom}
	s.sessions.open = map[*session]struct{}{}
	began := time.Now()
	var err error
	if s.m, err = newServer(); err != nil {
		return nil, err
	}
	s.server = s.m.Server()
	log, found, err := journal.Open(fs, o.Sync, s.replayer())
	if err != nil {
		closeServer(s.m)
		return nil, err
	}
	s.log = log
	s.report(found, time.Since(began))
	s.server.SetPreHook(s.before)
	s.running.Go(s.maintain)
	s.remind()
	return s, nil
}

// newServer starts a server without a listener.
func newServer() (*miniredis.Miniredis, error) {
	m := miniredis.NewMiniRedis()
	m.SetTime(time.UnixMilli(1))
	m.ClockTTL(true)
	conn, err := m.Dial()
	if err != nil {
		return nil, err
	}
	return m, conn.Close()
}

func closeServer(m *miniredis.Miniredis) {
	m.Close()
	m.CtxCancel()
}

func (s *Store) report(found journal.Found, took time.Duration) {
	s.logger.Info("opened embedded store", "records", found.Records, "bytes", found.Bytes, "duration", took)
	if cut := found.Cut; cut != nil {
		s.logger.Warn("cut off the end of the log, which was not stored completely when the process or the machine stopped",
			"file", cut.File, "offset", cut.Offset, "bytes", cut.Bytes, "records", cut.Records, "err", cut.Err)
	}
}

// Client returns a client of the store. The caller closes it before the store.
func (s *Store) Client() *redis.Client { return redis.NewClient(embedded.ClientOptions(s.dial)) }

func (s *Store) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	if err := s.serve(ours); err != nil {
		return nil, errors.Join(err, ours.Close(), theirs.Close())
	}
	return theirs, nil
}

// Close stores everything, and closes the connections.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	var err error
	if s.listener != nil {
		err = s.listener.Close()
	}
	close(s.stop)
	s.running.Wait()
	err = errors.Join(err, s.log.Close()) // replies that wait for it are sent
	s.sessions.close()
	closeServer(s.m)
	return errors.Join(err, s.unlock())
}

func (s *Store) listen(path string) error {
	// A socket that a killed process left: the lock says that no process uses it.
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	s.listener = l
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	s.running.Go(func() {
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				s.logger.Warn("cannot accept a connection to the embedded store", "err", err)
				select {
				case <-s.stop:
					return
				case <-time.After(time.Second):
				}
				continue
			}
			if s.serve(conn) != nil {
				_ = conn.Close() // the store is closed
			}
		}
	})
	return nil
}
