package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/clitest"
	"github.com/wakebell/wakebell/internal/redistest"
)

// fromEnvironment is setup without parallel tests, for variables.
func fromEnvironment(t *testing.T, variables ...string) *bundle {
	t.Helper()
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	return &bundle{t, redistest.Name(t), "redis://" + redistest.SharedAddr(t), redistest.Shared(t)}
}

func TestVariablesSetFlags(t *testing.T) {
	b := fromEnvironment(t, "WAKEBELL_SCHEDULE_IN=2h", "WAKEBELL_SCHEDULE_HEADER=a=1\nb=2,3", "WAKEBELL_PREFIX=p.", "WAKEBELL_SCHEDULE_ID=",
		// Handlers get these. A command that a handler runs must not take them for flags.
		"WAKEBELL_TOPIC=other", "WAKEBELL_ID=other", "WAKEBELL_CONTENT_TYPE=other/type", "WAKEBELL_CORRELATION_ID=other")
	b.fine("schedule", "-t", "TOPIC", "--id", "x")
	stored := objects(t, b.fine("get", "-t", "TOPIC", "x", "-o", "json"))[0]
	require.Equal(t, "p."+b.topic, stored["topic"])
	require.Equal(t, map[string]any{"a": "1", "b": "2,3"}, stored["headers"])
	require.NotEqual(t, "other", stored["correlation_id"])
	due := objects(t, b.fine("ls", "-t", "TOPIC", "-o", "json"))[0]["due"]
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--in", "1h")
	require.Less(t, objects(t, b.fine("ls", "-t", "TOPIC", "-o", "json"))[0]["due"], due, "a flag precedes its variable")
	b.fine("schedule", "-t", "TOPIC", "--id", "y", "--at", "2031-01-02T15:04:05Z") // excludes --in
}

func TestVariableSatisfiesRequiredFlag(t *testing.T) {
	b := fromEnvironment(t, "WAKEBELL_LS_TOPIC=somewhere")
	b.fine("schedule", "-t", "somewhere", "--in", "1h")
	b.fine("ls")
}

func TestWrongVariableIsNamed(t *testing.T) {
	b := fromEnvironment(t, "WAKEBELL_LS_LIMIT=many", "WAKEBELL_LS_DUE_BEFORE=later")
	code, _, stderr := b.call("ls", "-t", "TOPIC")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "WAKEBELL_LS_LIMIT: ")
}

// Every flag has a variable of its own. None is one that a handler gets, or that
// Kubernetes sets for a service called wakebell.
func TestVariablesAreDistinct(t *testing.T) {
	t.Parallel()
	root := newRoot(&cli.App{})
	owners := map[string]*pflag.Flag{}
	for _, name := range []string{"TOPIC", "ID", "ATTEMPT", "ACTIVATION", "DELIVERED_AT", "LATENESS_MS", "CONTENT_TYPE", "CORRELATION_ID", "REPLY_TO", "GATE", "FENCE"} {
		owners["WAKEBELL_"+name] = nil
	}
	check := func(cmd *cobra.Command) func(f *pflag.Flag) {
		return func(f *pflag.Flag) {
			if !cli.HasVariable(f) {
				return
			}
			name := cli.Variable(cmd, f)
			require.Regexp(t, "^WAKEBELL_[A-Z0-9_]+$", name)
			require.NotRegexp(t, "_(PORT|SERVICE_HOST)$|^WAKEBELL_HEADER_", name)
			owner, taken := owners[name]
			require.True(t, !taken || owner == f, name)
			owners[name] = f
		}
	}
	for _, cmd := range clitest.Leaves(root) {
		cmd.InheritedFlags()
		cmd.Flags().VisitAll(check(cmd))
	}
	require.Contains(t, owners, "WAKEBELL_REDIS")
	require.Contains(t, owners, "WAKEBELL_TOKEN_FILE")
	require.Contains(t, owners, "WAKEBELL_NODE_MAX_CONCURRENT")
	require.Contains(t, owners, "WAKEBELL_DEAD_LS_LIMIT")
}
