// Package nodejs tests the example of a program in Node.js.
package nodejs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/remote"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const (
	installLimit = 60 * time.Second
	runLimit     = 60 * time.Second
)

// install copies the example into a folder and installs its dependencies. It fails if
// this machine cannot do that.
func install(ctx context.Context, dir string) error {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return err
		}
	}
	for _, name := range []string{"package.json", "main.js"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, installLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--fetch-retries=0")
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	return nil
}

// It runs the example if the machine has Node.js and npm. Otherwise it passes and logs
// the reason.
func TestNodeJSWhereItCanBeInstalled(t *testing.T) {
	t.Parallel()
	const token = "known-to-both-of-them"
	dir := t.TempDir()
	if err := install(t.Context(), dir); err != nil {
		t.Logf("NOT RUN: this machine cannot install it: %v", err)
		return
	}
	redis := redistest.Start(t)
	sys, err := wakebell.New(actor.NewActorSystem(), conntest.New(t, redis.Client(t), connection.Config{}), wakebell.Config{})
	require.NoError(t, err)
	server, err := remote.Serve(sys, remote.Config{
		Tokens:         map[string]string{token: "scripts"},
		HandlerOptions: []wakebell.HandlerOption{wakebell.RetryBackoff(10*time.Millisecond, 10*time.Millisecond)},
	})
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	t.Cleanup(func() {
		require.NoError(t, sys.Stop())
		server.Stop()
	})
	protos, err := filepath.Abs("../..")
	require.NoError(t, err)

	run := func(token string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), runLimit)
		defer cancel()
		cmd := exec.CommandContext(ctx, "node", "main.js", server.Address(), "bells", protos)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "WAKEBELL_TOKEN="+token)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run(token)
	require.NoError(t, err, out)
	require.Equal(t, `scheduled js-1
its body is {"n":42}
none: NOT_FOUND
handle js-1 {"n":42} attempt 1
handle js-1 {"n":42} attempt 2
`, out)
	require.Eventually(t, func() bool {
		stats, err := sys.Client().Stats(t.Context(), "bells")
		return err == nil && stats.Total+stats.Dead == 0
	}, runLimit, 10*time.Millisecond, "it was acknowledged")

	out, err = run("not-" + token)
	require.Error(t, err)
	require.Contains(t, out, "UNAUTHENTICATED")
}
