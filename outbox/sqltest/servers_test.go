//go:build unix

package sqltest

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/outbox"
)

// patience bounds the waits for other goroutines and processes.
const patience = 60 * time.Second

// server is a database that belongs to a test.
type server struct {
	dialect     outbox.Dialect
	driver, dsn string
}

// open connects to the server until the end of the test.
func (s server) open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(s.driver, s.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// sqlite returns a database in a new file.
func sqlite(t testing.TB) server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "outbox.db")
	return server{outbox.SQLite, "sqlite", "file:" + file + "?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"}
}

// postgresql starts a server that listens on a Unix socket, and stops it at the end of
// the test.
func postgresql(t testing.TB, args ...string) server {
	t.Helper()
	own := newOwner(t, "postgres")
	data := filepath.Join(own.dir, "data")
	own.run(t, "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	own.start(t, syscall.SIGQUIT, "postgres", append([]string{
		"-D", data, "-k", own.dir, "-c", "listen_addresses=", "-c", "fsync=off",
		"-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c", "max_connections=200",
	}, args...)...)
	s := server{outbox.PostgreSQL, "pgx", fmt.Sprintf("host=%s user=postgres dbname=postgres", own.dir)}
	s.awaitAnswer(t)
	return s
}

// mariadb starts a server that listens on a Unix socket, and stops it at the end of the
// test. Args replace earlier options.
func mariadb(t testing.TB, args ...string) server {
	t.Helper()
	own := newOwner(t, "mysql")
	data, socket := filepath.Join(own.dir, "data"), filepath.Join(own.dir, "socket")
	own.run(t, "mariadb-install-db", "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	own.start(t, syscall.SIGTERM, "mariadbd", append([]string{
		"--no-defaults", "--datadir=" + data, "--socket=" + socket, "--skip-networking",
		"--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=16M", "--max-connections=200",
	}, args...)...)
	s := server{outbox.MySQL, "mysql", "root@unix(" + socket + ")/test"}
	server{driver: "mysql", dsn: "root@unix(" + socket + ")/"}.awaitAnswer(t)
	db := server{driver: "mysql", dsn: "root@unix(" + socket + ")/"}.open(t)
	_, err := db.ExecContext(t.Context(), "CREATE DATABASE IF NOT EXISTS test")
	require.NoError(t, err)
	return s
}

func (s server) awaitAnswer(t testing.TB) {
	t.Helper()
	db := s.open(t)
	require.Eventually(t, func() bool { return db.PingContext(t.Context()) == nil }, patience, 20*time.Millisecond)
}

// owner runs the programs of a database server, which refuse to run as root, in a
// folder of their own.
type owner struct {
	dir  string
	attr *syscall.SysProcAttr
}

// newOwner makes the folder. Root runs the programs as the named user, or as one without rights.
func newOwner(t testing.TB, name string) owner {
	t.Helper()
	dir, err := os.MkdirTemp("", "wb") //nolint:usetesting // t.TempDir is for one user only, and too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	o := owner{dir, redistest.ChildAttr()}
	if o.attr == nil {
		o.attr = &syscall.SysProcAttr{}
	}
	if os.Getuid() != 0 {
		return o
	}
	as, err := user.Lookup(name)
	if err != nil {
		as, err = user.LookupId("65534")
	}
	require.NoError(t, err)
	uid, err := strconv.Atoi(as.Uid)
	require.NoError(t, err)
	gid, err := strconv.Atoi(as.Gid)
	require.NoError(t, err)
	require.NoError(t, os.Chown(dir, uid, gid))
	o.attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} //nolint:gosec // ids of the system
	return o
}

func (o owner) command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program(t, name), args...) //nolint:noctx // ended by a signal of its own
	cmd.Dir, cmd.SysProcAttr = o.dir, o.attr
	cmd.Env = append(os.Environ(), "HOME="+o.dir, "TMPDIR="+o.dir)
	return cmd
}

func (o owner) run(t testing.TB, name string, args ...string) {
	t.Helper()
	out, err := o.command(t, name, args...).CombinedOutput()
	require.NoError(t, err, "%s: %s", name, out)
}

// start starts a server, and stops it at the end of the test.
func (o owner) start(t testing.TB, stop syscall.Signal, name string, args ...string) {
	t.Helper()
	cmd := o.command(t, name, args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(stop)
		timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() < 0 || t.Failed() {
			t.Logf("%s: %v: %s", name, err, output.String())
		}
	})
}

// program finds a program. Debian does not put those of PostgreSQL into PATH.
func program(t testing.TB, name string) string {
	t.Helper()
	if found, err := exec.LookPath(name); err == nil {
		return found
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} {
		more, _ := filepath.Glob(filepath.Join(dir, name))
		found = append(found, more...)
	}
	require.NotEmpty(t, found, "%s is not installed: `make outbox-test` installs it", name)
	slices.Sort(found)
	return found[len(found)-1]
}
