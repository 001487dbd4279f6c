package webhook

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	checkEvery      = time.Second // how often a file is looked at
	secretFileLimit = 64 << 10    // bytes
)

// secretSource has the secrets that sign now.
type secretSource interface{ current(now time.Time) []Secret }

type fixed []Secret

func (f fixed) current(time.Time) []Secret { return f }

// secretFile has the secrets of a file. It looks at the file when a request is signed, so
// that it needs no goroutine.
type secretFile struct {
	name string
	log  *slog.Logger

	mu      sync.Mutex
	checked time.Time
	stamp   stamp // of what was read last, also if it was wrong
	secrets []Secret
}

// stamp tells whether a file has changed; it is zero for a missing file.
type stamp struct {
	at   time.Time
	size int64
}

func stampOf(name string) (s stamp) {
	if info, err := os.Stat(name); err == nil {
		s.at, s.size = info.ModTime(), info.Size()
	}
	return s
}

func openSecretFile(name string, log *slog.Logger) (*secretFile, error) {
	f := &secretFile{name: name, log: log, stamp: stampOf(name), checked: time.Now()} // before reading: a later write is a change
	var err error
	f.secrets, err = f.read()
	return f, err
}

func (f *secretFile) current(now time.Time) []Secret {
	f.mu.Lock()
	defer f.mu.Unlock()
	if since := now.Sub(f.checked); since >= 0 && since < checkEvery {
		return f.secrets
	}
	f.checked = now
	is := stampOf(f.name)
	if is == f.stamp {
		return f.secrets
	}
	f.stamp = is
	secrets, err := f.read()
	if err != nil {
		f.log.Warn("changed secrets of a webhook cannot be used; keeping the previous ones", "file", f.name, "err", err)
		return f.secrets
	}
	f.log.Info("secrets of a webhook were read again", "file", f.name, "secrets", len(secrets))
	f.secrets = secrets
	return secrets
}

// read reads the file. A pipe or a device is an error: it would make a request wait.
func (f *secretFile) read() ([]Secret, error) {
	info, err := os.Stat(f.name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file (%s)", f.name, info.Mode())
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		f.log.Warn("other users than the owner have access to the secrets of a webhook", "file", f.name, "mode", info.Mode().Perm().String())
	}
	file, err := os.Open(f.name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it is only read
	content, err := io.ReadAll(io.LimitReader(file, secretFileLimit+1))
	if err != nil {
		return nil, err
	}
	secrets, err := parseSecrets(string(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return secrets, nil
}

// parseSecrets parses the content of a file: a secret on each line, and comments.
func parseSecrets(content string) (secrets []Secret, err error) {
	if len(content) > secretFileLimit {
		return nil, fmt.Errorf("larger than %d bytes", secretFileLimit)
	}
	number := 0
	for line := range strings.Lines(content) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s, err := ParseSecret(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		secrets = append(secrets, s)
	}
	switch {
	case len(secrets) == 0:
		return nil, errors.New("it has no secret")
	case len(secrets) > maxSecrets:
		return nil, fmt.Errorf("%d secrets, want at most %d", len(secrets), maxSecrets)
	}
	return secrets, nil
}
