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
	// python is the interpreter of the distribution: it has the packages that setup.sh
	// installs.
	python    = "/usr/bin/python3"
	token     = "known-to-both-of-them"
	testLimit = 5 * time.Minute
)

func TestClients(t *testing.T) {
	t.Parallel()
	program := redistest.Program(t)
	t.Run("python", func(t *testing.T) { testPython(t, program) })
	t.Run("typescript", func(t *testing.T) { testTypeScript(t, program) })
}

// testPython runs the tests with the package as pip installs it.
func testPython(t *testing.T, program string) {
	t.Parallel()
	dir := copyOf(t, "python", "src", "tests", "pyproject.toml", "README.md", "LICENSE")
	installed := filepath.Join(dir, "installed")
	run(t, dir, nil, python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
		"--disable-pip-version-check", "--root-user-action=ignore", "--no-warn-script-location", "--target", installed, ".")
	t.Run("types", func(t *testing.T) {
		t.Parallel()
		run(t, dir, nil, "mypy", "--no-error-summary")
	})
	t.Run("behaviour", func(t *testing.T) {
		t.Parallel()
		run(t, dir, append(environment(t, program), "PYTHONPATH="+installed), python, "-W", "error", "-m", "unittest", "--quiet")
	})
}

func testTypeScript(t *testing.T, program string) {
	t.Parallel()
	modules, err := filepath.Abs("typescript/node_modules")
	require.NoError(t, err)
	require.DirExists(t, modules, "`make setup` installs it")
	dir := copyOf(t, "typescript", "src", "test", "package.json", "tsconfig.json", "tsconfig.build.json", "README.md", "LICENSE")
	require.NoError(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	run(t, dir, nil, "node", "node_modules/typescript/bin/tsc", "--outDir", "built")
	run(t, dir, nil, "node", "node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json")
	out := run(t, dir, append(environment(t, program), "WAKEBELL_TEST_PACKAGE="+packed(t, dir, modules)), "node", "--test-reporter=spec", "built/test/all.js")
	require.NotContains(t, out, "asynchronous activity", "a timer or an event has thrown after its test")
}

// packed installs the package as npm does, and returns the folder of the program that
// uses it.
func packed(t *testing.T, dir, modules string) string {
	t.Helper()
	program := t.TempDir()
	run(t, dir, nil, "npm", "pack", "--ignore-scripts", "--silent", "--offline", "--pack-destination", program)
	archives, err := filepath.Glob(filepath.Join(program, "*.tgz"))
	require.NoError(t, err)
	require.Len(t, archives, 1)
	into := filepath.Join(program, "node_modules")
	require.NoError(t, os.MkdirAll(filepath.Join(into, "wakebell"), 0o700))
	run(t, program, nil, "tar", "-xzf", archives[0], "-C", filepath.Join(into, "wakebell"), "--strip-components=1")
	for _, dependency := range []string{"@bufbuild", "@connectrpc", "@types", "undici-types", "typescript"} {
		require.NoError(t, os.Symlink(filepath.Join(modules, dependency), filepath.Join(into, dependency)))
	}
	return program
}

// copyOf copies parts of a client into a new folder, so that builds leave nothing in the
// tree.
func copyOf(t *testing.T, client string, parts ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, part := range parts {
		from, to := filepath.Join(client, part), filepath.Join(dir, part)
		info, err := os.Stat(from)
		require.NoError(t, err)
		if info.IsDir() {
			require.NoError(t, os.CopyFS(to, os.DirFS(from)))
			continue
		}
		content, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, content, 0o600))
	}
	return dir
}

// run runs a command and returns its output. It fails the test if the command fails.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
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
	return string(out)
}

// environment starts a Redis and returns what the tests of a client need to start nodes.
func environment(t *testing.T, program string) []string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokens"), []byte("tests:"+token+"\n"), 0o600))
	certify(t, dir)
	addresses := make([]string, 16)
	for i := range addresses {
		addresses[i] = redistest.Address(t)
	}
	return []string{
		"WAKEBELL_TEST_PROGRAM=" + program,
		"WAKEBELL_TEST_REDIS=redis://" + redistest.Start(t).Addr,
		"WAKEBELL_TEST_ADDRESSES=" + strings.Join(addresses, ","),
		"WAKEBELL_TEST_TLS=" + dir,
	}
}
