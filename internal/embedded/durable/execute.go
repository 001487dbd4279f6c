package durable

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/wakebell/wakebell/internal/journal"
)

// unit is what becomes one record: a command, a script or a transaction.
type unit struct {
	bytes    int64 // of its arguments
	asked    bool  // for space
	refusal  string
	commands [][]string // that wrote, or tried to
}

// room is for how many bytes space is reserved before a unit writes, in addition to its
// arguments: a script may copy what is stored.
const room = 1 << 20

// before sees each command before miniredis executes it, also those of scripts. It
// returns true for commands that are refused.
func (s *Store) before(c *server.Peer, name string, args ...string) bool {
	switch s.kindOf(name, args) {
	case refused:
		c.WriteError(refusal(name))
		return true
	case writes:
		if !s.unit.asked {
			s.unit.asked = true
			s.unit.refusal = s.makeRoom()
		}
		if s.unit.refusal != "" {
			c.WriteError(s.unit.refusal)
			return true
		}
		s.ranges.wrote(name, args)
		s.unit.commands = append(s.unit.commands, append([]string{name}, args...))
	case reads:
		return s.answer(c, name, args)
	}
	return false
}

func refusal(name string) string {
	return fmt.Sprintf("ERR the embedded store does not support this use of %s", name)
}

// makeRoom returns the error with which commands that write are refused, as Redis refuses
// them when its memory is full or its log cannot be written; empty: there is room.
func (s *Store) makeRoom() string {
	err := s.log.Reserve(room + 2*s.unit.bytes)
	if failed := err != nil; failed != s.full {
		s.full = failed
		if failed {
			s.logger.Error("refusing writes: the embedded store cannot store them", "err", err)
		} else {
			s.logger.Info("accepting writes again")
		}
	}
	switch {
	case err == nil:
		return ""
	case errors.Is(err, journal.ErrFull):
		return "OOM command not allowed: the disk of the embedded store is full"
	default:
		return fmt.Sprintf("MISCONF the embedded store cannot write to its disk: %v", err)
	}
}

// execute executes a command, or the commands of a transaction, and stores what they
// wrote. The replies are sent when that is stored.
func (s *Store) execute(c *session, commands [][]string, transaction bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.out.begin()
	if s.closed {
		c.out.replace("-ERR the embedded store is closed\r\n")
		c.out.end(0)
		return
	}
	s.follow(s.now())
	s.unit = unit{}
	for _, args := range commands {
		for _, arg := range args {
			s.unit.bytes += int64(len(arg)) + 10
		}
	}
	if transaction {
		c.peer.WriteLen(len(commands))
	}
	for _, args := range commands {
		s.server.Dispatch(c.peer, args)
	}
	c.peer.Flush()
	if s.unit.refusal != "" {
		// Its first write was refused, so it wrote nothing.
		c.out.replace("-" + s.unit.refusal + "\r\n")
	}
	if len(s.unit.commands) > 0 {
		if _, err := s.log.Append(s.clock, s.unit.commands); err != nil {
			s.logger.Error("cannot store what was written; it is tried again", "err", err)
		}
		s.remind()
	}
	seq, whole := s.log.Seq()
	if !whole && len(s.unit.commands) == 0 {
		seq = 0 // reads are answered while nothing can be stored
	}
	s.unit = unit{}
	c.out.end(seq)
}

// held is by how many milliseconds the clock of the machine may be behind that of the
// store, which then stands still. Nodes report no smaller step of a clock.
const held = 1000

// follow sets the clock to that of the machine, also when that was set back, as a Redis
// does: a clock that waited for the machine's would fire nothing meanwhile.
func (s *Store) follow(now int64) {
	behind := s.clock - now
	if behind <= 0 {
		s.tick(now)
		return
	}
	if behind <= held {
		return
	}
	// What only reads saw expire by the clock so far has to expire in a replay too, so the
	// log has that clock. Without space for it the clock waits, as writes do.
	const size = 64
	if s.log.Reserve(size) != nil {
		return
	}
	if _, err := s.log.Append(s.clock, nil); err != nil {
		s.logger.Error("cannot store that the clock was set back; it is tried again", "err", err)
	}
	s.logger.Warn("the clock of the machine was set back", "duration", time.Duration(behind)*time.Millisecond)
	s.tick(now)
}

// tick sets the clock. Whole milliseconds make expiries exact in snapshots.
func (s *Store) tick(now int64) {
	if now < s.clock {
		s.m.Exists("") // any access removes what has expired, which a clock set back does not
	}
	s.clock = now
	s.m.SetTime(time.UnixMilli(now))
}

// replayer returns a function that executes records again.
func (s *Store) replayer() func(journal.Record) error {
	peer := server.NewPeer(bufio.NewWriter(io.Discard))
	return func(r journal.Record) error {
		s.tick(r.Clock)
		for _, args := range r.Commands {
			// A command that failed fails again.
			s.server.Dispatch(peer, args)
		}
		return nil
	}
}

// remind wakes the maintenance when the log is large.
func (s *Store) remind() {
	if s.log.Due(s.after) {
		select {
		case s.due <- struct{}{}:
		default:
		}
	}
}

// retry is how long the store waits before it tries again to take a snapshot.
const retry = 10 * time.Second

// maintain takes snapshots when the log is large, and after a failed sync; and writes a
// record that could not be written when there was no space.
func (s *Store) maintain() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var failed time.Time
	for {
		select {
		case <-s.stop:
			return
		case <-s.due:
			if time.Since(failed) < retry || !s.log.Due(s.after) {
				continue
			}
		case <-tick.C:
			_ = s.log.Flush() // a write fails with the same error, and logs it
			if s.log.Broken() == nil {
				continue
			}
		}
		if err := s.snapshot(); err != nil {
			failed = time.Now()
			s.logger.Warn("cannot take a snapshot of the embedded store", "err", err)
		}
	}
}
