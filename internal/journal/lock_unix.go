//go:build unix && !solaris && !illumos && !aix

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// lockFile is locked while a process uses the directory. It has the name of that process.
const lockFile = "lock"

// Lock locks a directory until unlock is called or the process ends. holder is what other
// processes see. It returns a *LockedError if another process has the directory.
func Lock(dir, holder string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer func() { _ = f.Close() }()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		name := make([]byte, 200)
		n, _ := f.ReadAt(name, 0) // without it the holder is unknown
		return nil, &LockedError{Dir: dir, Holder: strings.ToValidUTF8(strings.TrimSpace(string(name[:n])), "")}
	}
	err = errors.Join(f.Truncate(0), func() error { _, err := f.WriteAt([]byte(holder+"\n"), 0); return err }())
	if err != nil && !errors.Is(full(err), ErrFull) { // the lock holds without the name
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		// A process that is being started may have the file until its exec, so closing it
		// is not enough.
		return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
	}, nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
