package durable

import (
	"time"

	"github.com/wakebell/wakebell/internal/embedded/contents"
)

// snapshot writes the present state to a file, so that the log before it can be removed.
// Commands wait while the state is collected; strings are not copied.
func (s *Store) snapshot() error {
	s.snapshots.Lock()
	defer s.snapshots.Unlock()
	began := time.Now()
	s.mu.Lock()
	gen, err := s.log.Rotate()
	if err != nil {
		s.mu.Unlock()
		return err
	}
	base, _ := s.log.Seq()
	clock := s.clock
	all, err := contents.Of(s.m)
	s.mu.Unlock()
	paused := time.Since(began)
	if err != nil {
		return err
	}
	if err := s.log.Snapshot(gen, base, clock, all.Commands); err != nil {
		return err
	}
	_, size := s.log.Size()
	s.logger.Info("took a snapshot of the embedded store", "bytes", size, "duration", time.Since(began), "paused", paused)
	return nil
}
