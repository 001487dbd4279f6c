package durable

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/alicebob/miniredis/v2"

	"github.com/wakebell/wakebell/internal/embedded/contents"
	"github.com/wakebell/wakebell/internal/journal"
)

// Check reads a directory that no process uses, and returns what it has and what is
// damaged. It changes nothing.
func Check(dir string) (found journal.Found, damage []*journal.DamageError, err error) {
	m, found, damage, err := salvage(dir)
	if m != nil {
		closeServer(m)
	}
	return found, damage, err
}

// Export writes the commands that make what can be read of a directory, as RESP, which
// redis-cli --pipe sends to a server.
func Export(dir string, out io.Writer) (damage []*journal.DamageError, err error) {
	return export(dir, func(_ int64, all contents.Contents) error {
		return all.Commands(func(commands [][]string) error {
			var b []byte
			for _, args := range commands {
				b = fmt.Appendf(b, "*%d\r\n", len(args))
				for _, arg := range args {
					b = append(b, '$')
					b = strconv.AppendInt(b, int64(len(arg)), 10)
					b = append(b, "\r\n"+arg+"\r\n"...)
				}
			}
			_, err := out.Write(b)
			return err
		})
	})
}

// ErrNotEmpty is returned for a directory that has files already.
var ErrNotEmpty = errors.New("the directory is not empty")

// Copy writes what can be read of a directory to a new one, which is a store again.
func Copy(dir, into string) (damage []*journal.DamageError, err error) {
	return export(dir, func(clock int64, all contents.Contents) error {
		fs, err := journal.Dir(into)
		if err != nil {
			return err
		}
		if names, err := fs.Names(); err != nil {
			return err
		} else if len(names) > 0 {
			return fmt.Errorf("%s: %w", into, ErrNotEmpty)
		}
		return journal.Write(fs, clock, all.Commands)
	})
}

func export(dir string, write func(clock int64, all contents.Contents) error) ([]*journal.DamageError, error) {
	m, found, damage, err := salvage(dir)
	if err != nil {
		return damage, err
	}
	defer closeServer(m)
	all, err := contents.Of(m)
	if err != nil {
		return damage, err
	}
	return damage, write(found.Clock, all)
}

// salvage reads what can be read into a server, which the caller closes.
func salvage(dir string) (m *miniredis.Miniredis, found journal.Found, damage []*journal.DamageError, err error) {
	fs, err := journal.Existing(dir)
	if err != nil {
		return nil, found, nil, err
	}
	unlock, err := journal.Lock(dir, holder())
	if err != nil {
		return nil, found, nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if m, err = newServer(); err != nil {
		return nil, found, nil, err
	}
	s := &Store{m: m, server: m.Server()}
	found, err = journal.Salvage(fs, s.replayer(), func(d *journal.DamageError) { damage = append(damage, d) })
	if err != nil {
		closeServer(m)
		return nil, found, damage, err
	}
	return m, found, damage, nil
}

// holder is how other processes see this one.
func holder() string { return fmt.Sprintf("process %d (%s)", os.Getpid(), filepath.Base(os.Args[0])) }
