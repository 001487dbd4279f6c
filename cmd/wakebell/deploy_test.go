//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/clitest"
	"github.com/wakebell/wakebell/internal/redistest"
)

const deployed = "../../deploy"

func TestDeployedConfigurationFilesAreValid(t *testing.T) {
	b := setup(t)
	for _, file := range []string{"package/wakebell.yaml", "compose/wakebell.yaml", "kubernetes/base/wakebell.yaml"} {
		b.fine("config", "check", filepath.Join(deployed, file))
	}
}

// A server with the deployed settings, a node as each of the deployed users, and
// doctor: no complaint but that there is no replica.
func TestDoctorApprovesDeployedRedis(t *testing.T) {
	t.Parallel()
	conf, err := filepath.Abs(filepath.Join(deployed, "redis", "redis.conf"))
	require.NoError(t, err)
	server := redistest.Start(t, "--include", conf)
	deployUsers(t, server)
	timers := as(t, server.Addr, "wakebell:change-me")
	node := timers.start("node", "--topic", "TOPIC", "--log-level", "warn")
	beat := timers.start("beat", "--log-level", "warn")
	timers.fine("schedule", "--topic", "TOPIC", "--id", "due")
	timers.fine("schedules", "put", "each", "--topic", "TOPIC", "--every", "100ms")
	node.eventually(func() bool {
		return strings.Contains(node.out.String(), `"due"`) && strings.Contains(node.out.String(), `"each@`)
	})
	timers.fine("pause", "--topic", "TOPIC")
	timers.fine("resume", "--topic", "TOPIC")
	timers.fine("gate", "ls")
	approved(t, as(t, server.Addr, "wakebell-doctor:change-me-as-well").fine("doctor", "--all", "--topic", "TOPIC", "-o", "json"))
	require.Zero(t, beat.stop())
	require.Zero(t, node.stop())
	require.Empty(t, node.err.String()+beat.err.String())

	mail := as(t, server.Addr, "wakebell-queues:change-me-too")
	node = mail.start("node", "--queue", "mail", "--log-level", "warn")
	mail.fine("queue", "publish", "--queue", "mail", "--text", "welcome")
	node.eventually(func() bool { return strings.Contains(node.out.String(), "welcome") })
	require.Zero(t, node.stop())
	require.Empty(t, node.err.String())
}

var stopBound = regexp.MustCompile(`(?m)^\s*(?:TimeoutStopSec=|stop_grace_period: |terminationGracePeriodSeconds: )(\S+?)s?$`)

// A node ends at most 7 s after its drain timeout; docs/operations.md. What starts it
// must not kill it before.
func TestDeployedStopTimeoutsExceedStopBound(t *testing.T) {
	t.Parallel()
	const bound = 27 * time.Second
	for _, file := range []string{
		"systemd/wakebell.service", "systemd/wakebell-beat.service", "systemd/wakebell-dash.service", "compose/compose.yaml",
		"kubernetes/base/node.yaml", "kubernetes/base/beat.yaml", "kubernetes/base/dash.yaml",
		"helm/values.yaml", "helm/templates/beat.yaml", "helm/templates/dash.yaml",
	} {
		text, err := os.ReadFile(filepath.Join(deployed, file))
		require.NoError(t, err)
		found := stopBound.FindSubmatch(text)
		require.NotNil(t, found, file)
		limit, err := time.ParseDuration(string(found[1]) + "s")
		require.NoError(t, err)
		require.Greater(t, limit, bound, file)
	}
}

// The units are checked where systemd is installed.
func TestSystemdAcceptsUnits(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("systemd-analyze is not installed")
		return
	}
	for _, command := range []string{"node", "beat", "dash"} {
		name := "wakebell.service"
		if command != "node" {
			name = "wakebell-" + command + ".service"
		}
		text, err := os.ReadFile(filepath.Join(deployed, "systemd", name))
		require.NoError(t, err)
		unit := filepath.Join(t.TempDir(), name)
		// The program and its man pages are not installed here.
		here := strings.NewReplacer("/usr/bin/wakebell", "/bin/true", "Documentation=man:wakebell-"+command+"(1)\n", "").Replace(string(text))
		require.NotContains(t, here, "man:", name)
		require.NoError(t, os.WriteFile(unit, []byte(here), 0o600))
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", unit).CombinedOutput()
		require.NoError(t, err, string(out))
		require.NotContains(t, string(out), name, "warnings about the unit")
		out, err = exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--threshold=25", unit).CombinedOutput()
		require.NoError(t, err, string(out))
	}
}

// Variables of the units are those of flags: a wrong one would only be a warning in the log.
func TestUnitsSetVariablesOfFlags(t *testing.T) {
	t.Parallel()
	units, err := filepath.Glob(filepath.Join(deployed, "systemd", "*.service"))
	require.NoError(t, err)
	variable := regexp.MustCompile(`\bWAKEBELL_[A-Z_]+`)
	known := map[string]bool{}
	root := newRoot(&cli.App{})
	for name, cmd := range clitest.Leaves(root) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			known["WAKEBELL_"+strings.ToUpper(strings.NewReplacer(" ", "_", "-", "_").Replace(name+"_"+f.Name))] = true
		})
	}
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		known["WAKEBELL_"+strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))] = true
	})
	var found int
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		require.NoError(t, err)
		for _, name := range variable.FindAllString(string(text), -1) {
			require.True(t, known[name], "%s: %s", unit, name)
			found++
		}
	}
	require.GreaterOrEqual(t, found, 8)
}
