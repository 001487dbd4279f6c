package journal

import (
	"errors"
	"fmt"
	"syscall"
)

var (
	// ErrVersion is returned for files of a later version.
	ErrVersion = errors.New("written by a later version")
	// ErrFull is returned when there is no space on the disk for a record.
	ErrFull = errors.New("the disk is full")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("closed")

	errShort    = errors.New("the file ends within a record")
	errNoRecord = errors.New("no record begins here")
	errSum      = errors.New("the checksum of a record is wrong")
	errSeq      = errors.New("records before it are missing")
	errMissing  = errors.New("the file is missing")
	errEnd      = errors.New("the end of the snapshot is missing")
)

// DamageError says that stored commands cannot be read.
type DamageError struct {
	File   string
	Offset int64 // in bytes
	Err    error
}

func (e *DamageError) Error() string {
	if errors.Is(e.Err, errMissing) {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s is damaged at byte %d: %v", e.File, e.Offset, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// LockedError says that another process has the directory.
type LockedError struct {
	Dir    string
	Holder string // as the other process calls itself; empty: unknown
}

func (e *LockedError) Error() string {
	if e.Holder == "" {
		return e.Dir + " is in use by another process"
	}
	return fmt.Sprintf("%s is in use by %s", e.Dir, e.Holder)
}

// full classifies an error of a write.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
