// Package journaltest has a disk in memory that fails: it becomes full, writes a part,
// fails to sync, and forgets at a power cut what was not synced.
package journaltest

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/wakebell/wakebell/internal/journal"
)

// Disk is a directory in memory.
type Disk struct {
	mu     sync.Mutex
	names  map[string]*content
	stored map[string]*content // the names at the last Sync

	space    int64 // bytes that the files may have; negative: no bound
	failSync error
	failures int // writes that fail after a half
	watch    func(*Disk)
}

type content struct {
	bytes  []byte
	synced []byte
}

// New returns an empty disk.
func New() *Disk {
	return &Disk{names: map[string]*content{}, stored: map[string]*content{}, space: -1}
}

// Limit bounds the bytes of all files; negative: no bound.
func (d *Disk) Limit(space int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.space = space
}

// FailSync makes syncs fail; nil: they succeed again. As Linux does, a failed sync
// forgets what it did not write.
func (d *Disk) FailSync(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failSync = err
}

// FailWrites makes the next n writes stop in the middle.
func (d *Disk) FailWrites(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures = n
}

// Watch calls fn before each operation that changes the disk. fn may call Killed or Cut
// and no other method.
func (d *Disk) Watch(fn func(*Disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watch = fn
}

// Look calls fn while nothing changes the disk. Fn may call Killed or Cut and no other method.
func (d *Disk) Look(fn func(*Disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fn(d)
}

func (d *Disk) lock() {
	d.mu.Lock()
	if d.watch != nil {
		d.watch(d)
	}
}

// Used returns the bytes of all files.
func (d *Disk) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used()
}

func (d *Disk) used() (n int64) {
	for _, c := range d.names {
		n += int64(len(c.bytes))
	}
	return n
}

// Killed returns the disk as it is after the process was killed. In Watch and Look only.
func (d *Disk) Killed() *Disk {
	next := New()
	for name, c := range d.names {
		c := &content{bytes: slices.Clone(c.bytes), synced: slices.Clone(c.synced)}
		next.names[name], next.stored[name] = c, c
	}
	return next
}

// Cut returns the disk as it is after a power cut: names and sectors that were not synced
// have what they had, or what was written. pick(n) returns a number below n. In Watch and Look only.
func (d *Disk) Cut(pick func(n int) int) *Disk {
	next := New()
	all := maps.Clone(d.stored)
	maps.Copy(all, d.names)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		before, now := d.stored[name], d.names[name]
		c := now
		if before != now && pick(2) == 0 {
			c = before
		}
		if c != nil {
			bytes := c.survivors(pick)
			c = &content{bytes: bytes, synced: slices.Clone(bytes)}
			next.names[name], next.stored[name] = c, c
		}
	}
	return next
}

const sector = 64 // bytes; small, so that records have several

func (c *content) survivors(pick func(int) int) []byte {
	longest := max(len(c.bytes), len(c.synced))
	b := make([]byte, longest)
	copy(b, c.synced)
	size := []int{len(c.synced), len(c.bytes)}[pick(2)]
	for at := 0; at < longest; at += sector {
		end := min(at+sector, longest)
		same := len(c.synced) >= end && len(c.bytes) >= end && slices.Equal(c.synced[at:end], c.bytes[at:end])
		if !same && pick(2) == 0 && at < len(c.bytes) {
			copy(b[at:end], c.bytes[at:])
		}
	}
	return b[:size]
}

// Change changes a byte of a file, synced or not.
func (d *Disk) Change(name string, offset int, b byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.names[name]
	c.bytes[offset] ^= b
	if offset < len(c.synced) {
		c.synced[offset] ^= b
	}
}

// Names implements journal.FS.
func (d *Disk) Names() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.names)), nil
}

// Create implements journal.FS.
func (d *Disk) Create(name string) (journal.File, error) {
	d.lock()
	defer d.mu.Unlock()
	c := &content{}
	d.names[name] = c
	return &file{d: d, c: c}, nil
}

// Open implements journal.FS.
func (d *Disk) Open(name string) (journal.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.names[name]
	if !ok {
		return nil, fmt.Errorf("open %s: %w", name, os.ErrNotExist)
	}
	return &file{d: d, c: c}, nil
}

// Rename implements journal.FS.
func (d *Disk) Rename(from, to string) error {
	d.lock()
	defer d.mu.Unlock()
	c, ok := d.names[from]
	if !ok {
		return fmt.Errorf("rename %s: %w", from, os.ErrNotExist)
	}
	delete(d.names, from)
	d.names[to] = c
	return nil
}

// Remove implements journal.FS.
func (d *Disk) Remove(name string) error {
	d.lock()
	defer d.mu.Unlock()
	if _, ok := d.names[name]; !ok {
		return fmt.Errorf("remove %s: %w", name, os.ErrNotExist)
	}
	delete(d.names, name)
	return nil
}

// Sync implements journal.FS.
func (d *Disk) Sync() error {
	d.lock()
	defer d.mu.Unlock()
	if d.failSync != nil {
		return d.failSync
	}
	d.stored = maps.Clone(d.names)
	return nil
}

type file struct {
	d *Disk
	c *content
}

func (f *file) ReadAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if off >= int64(len(f.c.bytes)) {
		return 0, io.EOF
	}
	n := copy(b, f.c.bytes[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(b []byte, off int64) (n int, err error) {
	f.d.lock()
	defer f.d.mu.Unlock()
	if f.d.failures > 0 {
		f.d.failures--
		b, err = b[:len(b)/2], syscall.EIO
	}
	end := off + int64(len(b))
	if grows := end - int64(len(f.c.bytes)); f.d.space >= 0 && grows > 0 && f.d.used()+grows > f.d.space {
		end -= f.d.used() + grows - f.d.space
		b, err = b[:max(end-off, 0)], syscall.ENOSPC
		end = off + int64(len(b))
	}
	if more := end - int64(len(f.c.bytes)); more > 0 {
		f.c.bytes = append(f.c.bytes, make([]byte, more)...)
	}
	return copy(f.c.bytes[off:], b), err
}

func (f *file) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return int64(len(f.c.bytes)), nil
}

func (f *file) Truncate(size int64) error {
	f.d.lock()
	defer f.d.mu.Unlock()
	f.c.bytes = slices.Clip(f.c.bytes[:min(size, int64(len(f.c.bytes)))])
	return nil
}

// Reserve only looks: nothing else uses the disk.
func (f *file) Reserve(off, n int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.space >= 0 && f.d.used()-int64(len(f.c.bytes))+off+n > f.d.space {
		return syscall.ENOSPC
	}
	return nil
}

func (f *file) Sync() error {
	f.d.lock()
	defer f.d.mu.Unlock()
	if f.d.failSync != nil {
		return f.d.failSync
	}
	f.c.synced = slices.Clone(f.c.bytes)
	return nil
}

func (f *file) Close() error { return nil }
