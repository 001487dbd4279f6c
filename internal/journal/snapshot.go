package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
)

// Snapshot writes the snapshot that the log gen, as Rotate returned it, begins with.
// base is the number of the last record before it. Once it is on the disk, it replaces
// older files. The commands are written in batches.
func (l *Log) Snapshot(gen, base uint64, clock int64, batches func(func([][]string) error) error) error {
	name := snapName(gen)
	size, err := writeSnapshot(l.fs, name+unfinished, gen, base, clock, batches)
	if err == nil {
		err = errors.Join(l.fs.Rename(name+unfinished, name), l.fs.Sync())
	}
	if err != nil {
		return full(fmt.Errorf("write %s: %w", name, errors.Join(err, l.removeIfThere(name+unfinished))))
	}
	l.mu.Lock()
	l.snapSize, l.broken, l.synced = size, nil, max(l.synced, base)
	l.changed.Broadcast()
	l.mu.Unlock()
	return l.removeBefore(gen)
}

func (l *Log) removeIfThere(name string) error {
	names, err := l.fs.Names()
	for _, n := range names {
		if n == name {
			return l.fs.Remove(name)
		}
	}
	return err
}

// removeBefore removes the files that a snapshot replaces. What stays after an error is
// removed by the next start.
func (l *Log) removeBefore(gen uint64) error {
	names, err := l.fs.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		snap, isSnap := number(name, snapPrefix)
		log, isLog := number(name, logPrefix)
		if isSnap && snap < gen || isLog && log < gen {
			err = errors.Join(err, l.fs.Remove(name))
		}
	}
	return err
}

// Write writes commands to an empty directory, as a snapshot and an empty log.
func Write(fs FS, clock int64, batches func(func([][]string) error) error) error {
	l := &Log{fs: fs}
	if err := l.create(1); err != nil {
		return err
	}
	_, err := writeSnapshot(fs, snapName(1), 1, 0, clock, batches)
	return errors.Join(err, l.file.Close(), fs.Sync())
}

func writeSnapshot(fs FS, name string, gen, base uint64, clock int64, batches func(func([][]string) error) error) (size int64, err error) {
	f, err := fs.Create(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := header{kind: kindSnap, gen: gen, base: base}
	_, _ = rand.Read(h.salt[:]) // never fails
	b := h.encode()
	write := func() error {
		n, err := f.WriteAt(b, size)
		if err == nil && n < len(b) {
			err = io.ErrShortWrite
		}
		size += int64(n)
		b = b[:0]
		return err
	}
	r := Record{Seq: base, Synced: base, Clock: clock}
	err = batches(func(commands [][]string) error {
		r.Commands = commands
		if b = h.appendRecord(b, r); len(b) < 1<<20 {
			return nil
		}
		return write()
	})
	if err != nil {
		return size, err
	}
	r.Commands = nil
	b = h.appendRecord(b, r)
	return size, errors.Join(write(), f.Sync())
}
