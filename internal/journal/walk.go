package journal

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

const (
	logPrefix  = "log-"
	snapPrefix = "snapshot-"
	unfinished = ".tmp" // the ending of a snapshot that is being written
)

func logName(gen uint64) string  { return fmt.Sprintf("%s%08d", logPrefix, gen) }
func snapName(gen uint64) string { return fmt.Sprintf("%s%08d", snapPrefix, gen) }

// Cut is the torn end of the last log.
type Cut struct {
	File    string
	Offset  int64 // in bytes
	Bytes   int64
	Records int   // that could be read behind it; none was reported as stored
	Err     error // why the first record cannot be read
}

// Found is what a directory has.
type Found struct {
	Files   []string // that were read
	Bytes   int64    // of these files
	Records uint64
	Clock   int64 // of the last record, in Unix milliseconds
	Cut     *Cut  // nil: the last log ends with a record

	seq       uint64   // of the last record
	gen       uint64   // of the last log
	end       int64    // of the last record in the last log
	snapBytes int64    // of the snapshot
	lastEmpty []string // logs that were begun behind a torn one
	stale     []string // files that a snapshot replaces, and unfinished ones
}

// walker reads a directory in the order of the commands.
type walker struct {
	fs       FS
	apply    func(Record) error
	damaged  func(*DamageError) error // an error ends the walk
	found    Found
	snapshot uint64 // 0: none
	logs     []uint64
}

// Read reads all records of a directory in order: it stops at damage.
func Read(fs FS, apply func(Record) error) (Found, error) {
	return walk(fs, apply, func(err *DamageError) error { return err })
}

// Salvage reads what can be read, and reports each damage.
func Salvage(fs FS, apply func(Record) error, damaged func(*DamageError)) (Found, error) {
	return walk(fs, apply, func(err *DamageError) error {
		damaged(err)
		return nil
	})
}

func walk(fs FS, apply func(Record) error, damaged func(*DamageError) error) (Found, error) {
	w := &walker{fs: fs, apply: apply, damaged: damaged}
	if err := w.list(); err != nil {
		return w.found, err
	}
	if err := w.readSnapshot(); err != nil {
		return w.found, err
	}
	for i := 0; i < len(w.logs); i++ { // a torn log removes those behind it
		if err := w.readLog(i); err != nil {
			return w.found, err
		}
	}
	return w.found, nil
}

// list finds the last snapshot and the logs from there on.
func (w *walker) list() error {
	names, err := w.fs.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if gen, ok := number(name, snapPrefix); ok {
			w.snapshot = max(w.snapshot, gen)
		}
	}
	for _, name := range names {
		if strings.HasPrefix(name, snapPrefix) && strings.HasSuffix(name, unfinished) {
			w.found.stale = append(w.found.stale, name)
		} else if gen, ok := number(name, snapPrefix); ok && gen < w.snapshot {
			w.found.stale = append(w.found.stale, name)
		} else if gen, ok := number(name, logPrefix); ok && gen < w.snapshot {
			w.found.stale = append(w.found.stale, name)
		} else if ok {
			w.logs = append(w.logs, gen)
		}
	}
	slices.Sort(w.logs)
	first := max(w.snapshot, 1)
	if w.snapshot > 0 && len(w.logs) == 0 || len(w.logs) > 0 && w.logs[0] != first {
		return w.damaged(&DamageError{File: logName(first), Err: errMissing})
	}
	return nil
}

func number(name, prefix string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0
}

// open opens a file and counts it. A nil reader and a nil error: it is damaged, and the
// walk goes on.
func (w *walker) open(name string, kind byte) (*reader, error) {
	r, err := openReader(w.fs, name, kind)
	if r != nil {
		w.found.Files = append(w.found.Files, name)
		w.found.Bytes += r.size
	}
	if err == nil {
		return r, nil
	}
	if r != nil {
		_ = r.file.Close() // it was only read
	}
	if damage, ok := errors.AsType[*DamageError](err); ok {
		return nil, w.damaged(damage)
	}
	return nil, err
}

func (w *walker) take(rec Record) error {
	w.found.Records++
	w.found.seq = rec.Seq
	w.found.Clock = rec.Clock
	return w.apply(rec)
}

// readSnapshot reads the snapshot, whose records all have the number of the last record
// before it. The last one has no commands.
func (w *walker) readSnapshot() error {
	if w.snapshot == 0 {
		return nil
	}
	w.found.gen = w.snapshot
	r, err := w.open(snapName(w.snapshot), kindSnap)
	if r == nil {
		return err
	}
	defer func() { _ = r.file.Close() }() // it was only read
	w.found.seq, w.found.snapBytes = r.base, r.size
	complete := false
	for {
		rec, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if damage, ok := errors.AsType[*DamageError](err); ok {
			if err := w.damaged(damage); err != nil {
				return err
			}
			err = r.resume(func(Record) bool { return false })
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		complete = len(rec.Commands) == 0
		if err := w.take(rec); err != nil {
			return err
		}
	}
	if !complete {
		return w.damaged(&DamageError{File: r.name, Offset: r.size, Err: errEnd})
	}
	return nil
}

// readLog reads the log i. Records behind the first that cannot be read are only taken
// if the walk goes on after damage.
func (w *walker) readLog(i int) error {
	name := logName(w.logs[i])
	if empty, err := w.unbegun(i); err != nil || empty {
		if empty {
			w.found.lastEmpty = append(w.found.lastEmpty, name)
		}
		return err
	}
	r, err := w.open(name, kindLog)
	if r == nil {
		return err
	}
	defer func() { _ = r.file.Close() }() // it was only read
	w.found.gen, w.found.end = w.logs[i], headerSize
	if r.base != w.found.seq {
		if err := w.damaged(&DamageError{File: name, Err: errSeq}); err != nil {
			return err
		}
		w.found.seq = r.base
	}
	for {
		at := r.off
		rec, err := r.next()
		if err == nil && rec.Seq != w.found.seq+1 {
			if err := w.damaged(&DamageError{File: name, Offset: at, Err: errSeq}); err != nil {
				return err
			}
		}
		if err == nil {
			if err := w.take(rec); err != nil {
				return err
			}
			w.found.end = r.off
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		damage, ok := errors.AsType[*DamageError](err)
		if !ok {
			return err
		}
		if done, err := w.unreadable(r, i, damage); done || err != nil {
			return err
		}
	}
}

// unreadable decides whether a record is torn or damaged. After damage, the position is
// the next record that can be read.
func (w *walker) unreadable(r *reader, i int, damage *DamageError) (done bool, err error) {
	at, readable, stored := r.off, 0, false
	err = r.resume(func(rec Record) bool {
		readable++
		stored = stored || rec.Synced > w.found.seq
		return true
	})
	if err != nil {
		return true, err
	}
	for next := i + 1; next < len(w.logs) && !stored; next++ {
		empty, err := w.empty(next)
		if err != nil {
			return true, err
		}
		stored = !empty
	}
	if !stored {
		w.found.Cut = &Cut{File: r.name, Offset: at, Bytes: r.size - at, Records: readable, Err: damage.Err}
		for _, gen := range w.logs[i+1:] {
			w.found.lastEmpty = append(w.found.lastEmpty, logName(gen))
		}
		w.logs = w.logs[:i+1]
		return true, nil
	}
	if err := w.damaged(damage); err != nil {
		return true, err
	}
	r.seek(at)
	return false, r.resume(func(Record) bool { return false })
}

// unbegun reports whether the log i is the last and its header was never stored.
func (w *walker) unbegun(i int) (bool, error) {
	if i < len(w.logs)-1 {
		return false, nil
	}
	r, err := openReader(w.fs, logName(w.logs[i]), kindLog)
	if r != nil {
		_ = r.file.Close() // it was only read
	}
	if _, ok := errors.AsType[*DamageError](err); ok {
		return r.size <= headerSize, nil
	}
	return false, err
}

// empty reports whether a log has no record that can be read.
func (w *walker) empty(i int) (bool, error) {
	r, err := openReader(w.fs, logName(w.logs[i]), kindLog)
	if r != nil {
		defer func() { _ = r.file.Close() }() // it was only read
	}
	if _, ok := errors.AsType[*DamageError](err); ok {
		return r.size <= headerSize, nil
	}
	if err != nil {
		return false, err
	}
	_, err = r.next()
	return errors.Is(err, io.EOF), nil
}
