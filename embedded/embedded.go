// Package embedded stores timers in a directory instead of a Redis, for programs that run
// as one process on one machine:
//
//	store, err := embedded.Open("/var/lib/invoices", embedded.Options{})
//	…
//	rdb := store.Client()
//	conn, err := connection.New(rdb, connection.Config{})
//
// The client is used for everything else of Wakebell: the keys, values and scripts are
// those of a Redis, to which topics can be moved later. An imitation of Redis in this
// process (miniredis) keeps all data in memory and logs what is written.
//
// # Guarantees
//
// With SyncAlways, a reply is sent when what was executed before it is on the disk: a
// crash of the process, the system or the machine loses no acknowledged write. While the
// disk is full, writes are refused with the error that Redis has when its memory is full
// (wakebelltype.ErrMemoryFull), and nothing is lost; when there is space they succeed
// again.
//
// # Limits
//
// Commands are executed one at a time. Blocking commands, WATCH, SPOP, HyperLogLogs,
// expiring fields of hashes, and databases other than 0 are refused. docs/scale.md has
// what it handles, and when to change to Redis.
package embedded

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/embedded/durable"
	"github.com/wakebell/wakebell/internal/journal"
)

// Sync says when writes are stored on the disk. The names are those of appendfsync in
// Redis.
type Sync string

const (
	// SyncAlways stores each write before it is acknowledged; writes that are waiting
	// share a sync. It is the default.
	SyncAlways Sync = "always"
	// SyncEverySec stores writes every second: a crash of the system or the machine, but
	// not one of the process, loses up to the last second.
	SyncEverySec Sync = "everysec"
	// SyncNo leaves it to the operating system, which may take half a minute.
	SyncNo Sync = "no"
)

var (
	// ErrLocked is returned if another process has opened the directory. The error names
	// that process.
	ErrLocked = errors.New("in use by another process")
	// ErrDamaged is returned if stored data cannot be read. The error names the file and
	// the offset in bytes. Nothing is changed.
	ErrDamaged = errors.New("damaged")
	// ErrVersion is returned for a directory that a later version has written.
	ErrVersion = errors.New("written by a later version")
)

// Options configure a Store. The zero value is valid.
type Options struct {
	// Sync says when writes are stored; empty: SyncAlways.
	Sync Sync
	// Logger gets what the store reports, such as the cut of a write that was in progress
	// at a crash; nil: slog.Default.
	Logger *slog.Logger
	// Socket is the path of a Unix socket that the store creates, with which other
	// processes of the same user use it as a Redis: unix://PATH. Empty: none.
	Socket string
}

// Store is an open directory.
type Store struct{ s *durable.Store }

// Open opens the directory dir, which is created if it does not exist. Only one process
// can have it open. The caller closes the Store.
func Open(dir string, o Options) (*Store, error) {
	mode, err := o.Sync.mode()
	if err != nil {
		return nil, err
	}
	s, err := durable.Open(dir, durable.Options{Sync: mode, Logger: o.Logger, Socket: o.Socket})
	if err != nil {
		return nil, explain(dir, err)
	}
	return &Store{s}, nil
}

// Validate returns an error unless s is a known mode or empty.
func (s Sync) Validate() error {
	_, err := s.mode()
	return err
}

func (s Sync) mode() (journal.Sync, error) {
	switch s {
	case "", SyncAlways:
		return journal.Always, nil
	case SyncEverySec:
		return journal.EverySec, nil
	case SyncNo:
		return journal.No, nil
	}
	return 0, fmt.Errorf("sync %q is not always, everysec or no", string(s))
}

// explain classifies an error of opening, and says what helps.
func explain(dir string, err error) error {
	const opening = "open embedded store"
	if locked, ok := errors.AsType[*journal.LockedError](err); ok {
		return fmt.Errorf("%s: %w: %w", opening, ErrLocked, locked)
	}
	if damage, ok := errors.AsType[*journal.DamageError](err); ok {
		return fmt.Errorf("%s %s: %w: %w; \"wakebell embedded check %s\" shows what is lost, and \"wakebell embedded export %s\" saves the rest",
			opening, dir, ErrDamaged, damage, dir, dir)
	}
	if errors.Is(err, journal.ErrVersion) {
		return fmt.Errorf("%s %s: %w: %w", opening, dir, ErrVersion, err)
	}
	return fmt.Errorf("%s %s: %w", opening, dir, err)
}

// Client returns a client of the store. The caller closes it before the store; each call
// returns another.
func (s *Store) Client() redis.UniversalClient { return s.s.Client() }

// Close stores everything and closes the directory. Calls in progress fail.
func (s *Store) Close() error {
	if err := s.s.Close(); err != nil {
		return fmt.Errorf("close embedded store: %w", err)
	}
	return nil
}
