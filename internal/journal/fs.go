package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// FS are the files of one directory. Tests replace it to fail.
type FS interface {
	// Names returns the names of the files, in order.
	Names() ([]string, error)
	// Create creates a file; one with this name is emptied.
	Create(name string) (File, error)
	// Open opens a file that exists, to read it and to write to it.
	Open(name string) (File, error)
	Rename(from, to string) error
	Remove(name string) error
	// Sync stores the names of the files.
	Sync() error
}

// File is a file of a directory.
type File interface {
	io.ReaderAt
	io.WriterAt
	Size() (int64, error)
	Truncate(size int64) error
	// Reserve makes the disk reserve n bytes behind offset, without changing the size.
	Reserve(offset, n int64) error
	// Sync stores what was written.
	Sync() error
	Close() error
}

// Dir returns the files of a directory, which is created if it does not exist.
func Dir(path string) (FS, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	return osDir(path), nil
}

// Existing returns the files of a directory that exists.
func Existing(path string) (FS, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", path)
	}
	return osDir(path), nil
}

type osDir string

func (d osDir) Names() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

func (d osDir) open(name string, flags int) (File, error) {
	f, err := os.OpenFile(filepath.Join(string(d), name), flags, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d osDir) Create(name string) (File, error) {
	return d.open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

// Open opens files that cannot be written too, for a check of a copy.
func (d osDir) Open(name string) (File, error) {
	f, err := d.open(name, os.O_RDWR)
	if errors.Is(err, os.ErrPermission) {
		return d.open(name, os.O_RDONLY)
	}
	return f, err
}

func (d osDir) Rename(from, to string) error {
	return os.Rename(filepath.Join(string(d), from), filepath.Join(string(d), to))
}

func (d osDir) Remove(name string) error { return os.Remove(filepath.Join(string(d), name)) }

func (d osDir) Sync() error { return syncDir(string(d)) }

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) Reserve(offset, n int64) error { return reserve(f.File, offset, n) }
