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

	"github.com/stretchr/testify/require"

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
	for _, file := range []string{"systemd/wakebell.service", "compose/compose.yaml", "kubernetes/base/node.yaml", "kubernetes/base/beat.yaml"} {
		text, err := os.ReadFile(filepath.Join(deployed, file))
		require.NoError(t, err)
		found := stopBound.FindSubmatch(text)
		require.NotNil(t, found, file)
		limit, err := time.ParseDuration(string(found[1]) + "s")
		require.NoError(t, err)
		require.Greater(t, limit, bound, file)
	}
}

// The unit is checked where systemd is installed.
func TestSystemdAcceptsUnit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("systemd-analyze is not installed")
		return
	}
	text, err := os.ReadFile(filepath.Join(deployed, "systemd", "wakebell.service"))
	require.NoError(t, err)
	unit := filepath.Join(t.TempDir(), "wakebell.service")
	// The program and its man pages are not installed here.
	here := strings.NewReplacer("/usr/bin/wakebell", "/bin/true", "Documentation=man:wakebell-node(1)\n", "").Replace(string(text))
	require.NoError(t, os.WriteFile(unit, []byte(here), 0o600))
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", unit).CombinedOutput()
	require.NoError(t, err, string(out))
	require.NotContains(t, string(out), filepath.Base(unit), "warnings about the unit")
	out, err = exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--threshold=25", unit).CombinedOutput()
	require.NoError(t, err, string(out))
}
