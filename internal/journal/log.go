package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Sync says when records are stored on the disk, as appendfsync of Redis.
type Sync int

const (
	// Always stores each record before it is reported.
	Always Sync = iota
	// EverySec stores records every second.
	EverySec
	// No leaves it to the operating system.
	No
)

// reserved is how much space is reserved at once, in bytes.
const reserved = 4 << 20

// Log appends records to a directory.
//
// Invariant: what the last log has up to size are whole records; nothing is behind it
// except for what a failed write left, which the next one overwrites.
type Log struct {
	fs   FS
	mode Sync

	// syncing is held while a file is synced, or the file changes. It is locked before mu.
	syncing sync.Mutex

	mu       sync.Mutex
	changed  *sync.Cond // synced, pending, broken or closed
	file     File
	header   header
	size     int64
	reserved int64  // up to which space is reserved
	seq      uint64 // of the last record
	synced   uint64
	pending  []byte // the last record, which could not be written
	broken   error  // of a sync: what the file has is unknown until the next snapshot
	closed   bool
	snapSize int64

	work    chan struct{} // records to sync
	stop    chan struct{}
	running sync.WaitGroup
}

// Open reads a directory and opens its last log. A torn end is cut off.
func Open(fs FS, mode Sync, apply func(Record) error) (*Log, Found, error) {
	found, err := Read(fs, apply)
	if err != nil {
		return nil, found, err
	}
	l := &Log{
		fs: fs, mode: mode, seq: found.seq, synced: found.seq, snapSize: found.snapBytes,
		work: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	l.changed = sync.NewCond(&l.mu)
	if err := l.begin(found); err != nil {
		return nil, found, err
	}
	l.running.Go(l.store)
	return l, found, nil
}

// begin makes the files of the directory those of the log.
func (l *Log) begin(found Found) error {
	for _, name := range append(found.stale, found.lastEmpty...) {
		if err := l.fs.Remove(name); err != nil {
			return err
		}
	}
	if found.end == 0 { // no log
		return l.create(max(found.gen, 1))
	}
	name := logName(found.gen)
	r, err := openReader(l.fs, name, kindLog)
	if err != nil {
		return err
	}
	l.file, l.header, l.size = r.file, r.header, found.end
	// Also without a cut: what the process before this one wrote need not be on the disk.
	return errors.Join(l.file.Truncate(l.size), l.file.Sync(), l.fs.Sync())
}

// create begins an empty log. It is on the disk before it has a record.
func (l *Log) create(gen uint64) error {
	h := header{kind: kindLog, gen: gen, base: l.seq}
	_, _ = rand.Read(h.salt[:]) // never fails
	f, err := l.fs.Create(logName(gen))
	if err != nil {
		return full(err)
	}
	_, err = f.WriteAt(h.encode(), 0)
	if err = errors.Join(err, f.Sync(), l.fs.Sync()); err != nil {
		return full(errors.Join(err, f.Close(), l.fs.Remove(logName(gen))))
	}
	l.file, l.header, l.size, l.reserved = f, h, headerSize, 0
	return nil
}

// Reserve must be called before commands that write are executed: it returns an error,
// which is ErrFull on a full disk, if a record of n bytes cannot be appended.
func (l *Log) Reserve(n int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	if l.broken != nil {
		return l.broken
	}
	if err := l.writePending(); err != nil {
		return err
	}
	if l.size+n <= l.reserved {
		return nil
	}
	n = max(n, reserved)
	if err := l.file.Reserve(l.size, n); err != nil {
		return full(err)
	}
	l.reserved = l.size + n
	return nil
}

// Append appends a record and returns its number. If it cannot be written, although
// space was reserved, it is kept and written by a later call of Reserve or Flush; until
// then it is not stored.
func (l *Log) Append(clock int64, commands [][]string) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	l.pending = l.header.appendRecord(l.pending[:0], Record{Seq: l.seq, Synced: l.synced, Clock: clock, Commands: commands})
	return l.seq, l.writePending()
}

// Flush writes a record that could not be written before.
func (l *Log) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writePending()
}

func (l *Log) writePending() error {
	if len(l.pending) == 0 {
		return nil
	}
	n, err := l.file.WriteAt(l.pending, l.size)
	if err == nil && n < len(l.pending) {
		err = io.ErrShortWrite
	}
	if err != nil {
		// A part of a record is cut off at the latest by the next start.
		return full(errors.Join(err, l.file.Truncate(l.size)))
	}
	l.size += int64(len(l.pending))
	l.pending = l.pending[:0]
	if cap(l.pending) > reserved {
		l.pending = nil
	}
	l.changed.Broadcast()
	select {
	case l.work <- struct{}{}:
	default:
	}
	return nil
}

// Size returns the bytes of the log, and those of the last snapshot.
func (l *Log) Size() (log, snapshot int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size, l.snapSize
}

// Seq returns the number of the last record. whole is false while a record waits to be
// written.
func (l *Log) Seq() (seq uint64, whole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq, len(l.pending) == 0 && l.broken == nil
}

// Broken returns the error of a sync after which the log needs a snapshot, or nil.
func (l *Log) Broken() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// written returns the number of the last record that is in the file.
func (l *Log) written() uint64 {
	if len(l.pending) > 0 {
		return l.seq - 1
	}
	return l.seq
}

// Wait waits until the record seq is stored as the mode promises, and reports whether it
// is. It returns false after Close, and once given becomes true at a Wake.
func (l *Log) Wait(seq uint64, given func() bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if l.mode == Always && l.synced >= seq || l.mode != Always && l.written() >= seq {
			return true
		}
		if l.closed || given() {
			return false
		}
		l.changed.Wait()
	}
}

// Wake makes calls of Wait look again.
func (l *Log) Wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed.Broadcast()
}

// store syncs the file. All records that arrive meanwhile are in the next sync.
func (l *Log) store() {
	if l.mode == No {
		return
	}
	tick := make(<-chan time.Time)
	work := l.work
	if l.mode == EverySec {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		tick, work = t.C, nil
	}
	for {
		select {
		case <-l.stop:
			return
		case <-work:
		case <-tick:
		}
		_ = l.sync() // kept in broken
	}
}

// sync syncs the file. After an error the system may have forgotten what it did not
// write, so another sync of the file proves nothing.
func (l *Log) sync() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	f, upTo, err := l.file, l.written(), l.broken
	if err != nil || upTo <= l.synced {
		l.mu.Unlock()
		return err
	}
	l.mu.Unlock()
	err = f.Sync()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.broken = fmt.Errorf("sync %s: %w", logName(l.header.gen), err)
	} else {
		l.synced = max(l.synced, upTo)
	}
	l.changed.Broadcast()
	return l.broken
}

// Rotate begins a new log, for a snapshot of the present state. No record may be
// appended meanwhile. Without records since it began, the log stays.
func (l *Log) Rotate() (gen uint64, err error) {
	if err := l.Flush(); err != nil {
		return 0, err
	}
	_ = l.sync() // a broken log needs the snapshot
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size == headerSize && l.header.base == l.seq {
		return l.header.gen, nil
	}
	old, size := l.file, l.size
	if err := l.create(l.header.gen + 1); err != nil {
		return 0, err
	}
	// The old log frees what was reserved; without that, it is freed with the snapshot.
	_ = errors.Join(old.Truncate(size), old.Close())
	return l.header.gen, nil
}

// Close stores all records.
func (l *Log) Close() error {
	close(l.stop)
	l.running.Wait()
	err := errors.Join(l.Flush(), l.sync())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.changed.Broadcast()
	return errors.Join(err, l.file.Truncate(l.size), l.file.Close())
}

// due is the size of a log after which a snapshot is taken at least, in bytes.
const due = 64 << 20

// Due reports whether the log is as large as the last snapshot, and 64 MiB.
func (l *Log) Due(minimum int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if minimum <= 0 {
		minimum = due
	}
	return l.size > max(minimum, l.snapSize)
}
