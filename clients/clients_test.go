//go:build unix

package clients

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const (
	python    = "/usr/bin/python3" // of the distribution: it has the packages that setup.sh installs
	token     = "known-to-both-of-them"
	testLimit = 5 * time.Minute
)

func TestPython(t *testing.T) {
	t.Parallel()
	dir := copyOf(t, "python")
	installed := filepath.Join(dir, "installed")
	run(t, dir, nil, python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
		"--disable-pip-version-check", "--root-user-action=ignore", "--no-warn-script-location", "--target", installed, ".")
	t.Run("types", func(t *testing.T) {
		t.Parallel()
		run(t, dir, nil, "mypy", "--no-error-summary")
	})
	t.Run("tests", func(t *testing.T) {
		t.Parallel()
		run(t, dir, append(environment(t), "PYTHONPATH="+installed), python, "-W", "error", "-m", "unittest", "--quiet")
	})
}

// copyOf copies a client into a new folder, so that builds leave nothing in the tree.
func copyOf(t *testing.T, client string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(client)))
	return dir
}

// run runs a command, and fails the test with its output if it fails.
func run(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	require.NoError(t, err, "`make setup` installs it")
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	// Its nodes end with it.
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, time.Second
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", name, strings.Join(args, " "), out)
	t.Logf("%s", out)
}

// environment starts a Redis and returns what the tests of a client need to start nodes.
func environment(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "wakebell")
	run(t, ".", nil, "go", "build", "-o", program, "../cmd/wakebell")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokens"), []byte("tests:"+token+"\n"), 0o600))
	certify(t, dir)
	return []string{
		"WAKEBELL_TEST_PROGRAM=" + program,
		"WAKEBELL_TEST_REDIS=redis://" + redistest.Start(t).Addr,
		"WAKEBELL_TEST_ADDRESSES=" + strings.Join([]string{redistest.Address(t), redistest.Address(t), redistest.Address(t)}, ","),
		"WAKEBELL_TEST_TLS=" + dir,
	}
}
