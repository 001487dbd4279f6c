package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/clitest"
	"github.com/wakebell/wakebell/connection"
)

// closedPort returns the address of a port at which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// An error of an unreachable Redis is about the command and the server, not about the key
// that was read.
func TestRedisThatIsDownIsNamed(t *testing.T) {
	b := setup(t)
	down := closedPort(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"ls", "-t", "x"}, `wakebell: list "x": redis at ` + down + " refuses connections\n"},
		{[]string{"stats"}, "wakebell: stats: redis at " + down + " refuses connections\n"},
		{[]string{"queue", "stats", "--queue", "q"}, `wakebell: queue stats "q": redis at ` + down + " refuses connections\n"},
		{[]string{"schedule", "-t", "x", "--count", "2"}, `wakebell: 0 of 2 timers are scheduled; 2 more may be: schedule "x": redis at ` + down + " refuses connections\n"},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			t.Parallel()
			inner := &bundle{t, b.topic, "redis://" + down, b.rdb}
			code, _, stderr := inner.call(c.args...)
			require.Equal(t, cli.ExitError, code)
			require.Contains(t, stderr, c.says)
			require.NotContains(t, stderr, "timers_")
		})
	}
}

// A URL of another kind of server than the one that answers is named as the mistake.
func TestWrongKindOfURLIsNamed(t *testing.T) {
	b := setup(t)
	addr := strings.TrimPrefix(b.redis, "redis://")
	code, _, stderr := b.call("ls", "-t", "TOPIC", "--redis", "redis+cluster://"+addr)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "is not a Cluster; use redis:// in place of redis+cluster://")
	code, _, stderr = b.call("topics", "--redis", "redis+cluster://"+addr)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "wakebell: topics: redis at "+addr+" is not a Cluster")
	require.NotContains(t, stderr, "queues cannot be listed", "the mistake is reported once")
	code, _, stderr = b.call("ls", "-t", "TOPIC", "--redis", "rediss://"+addr)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, `wakebell: list "`+b.topic+`": redis at `+addr+" does not answer, or has no TLS at this port (use redis:// there)\n")
}

// What is named on the command line must be there: one rule for all commands that read.
func TestCommandsThatReadRequireWhatTheyName(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--in", "1h")
	typed := b.topic + "z"
	for _, args := range [][]string{
		{"ls", "-t", typed},
		{"ls", "-t", typed, "-o", "json"},
		{"ls", "-t", typed, "--search", "y"},
		{"stats", "-t", typed},
		{"tail", "-t", typed},
		{"history", "-t", typed},
		{"dead", "ls", "-t", typed},
		{"get", "-t", typed, "x"},
		{"queue", "stats", "--queue", typed},
		{"queue", "ls", "--queue", typed},
		{"queue", "dead", "ls", "--queue", typed},
		{"queue", "history", "--queue", typed},
		{"gate", "show", typed},
	} {
		var code int
		var stderr string
		require.Eventually(t, func() bool { // a name that cannot be looked up within a second is taken for right
			code, _, stderr = b.call(args...)
			return code != cli.ExitOK
		}, waitLimit, waitTick, args)
		require.Equal(t, cli.ExitNotFound, code, "%v: %s", args, stderr)
		require.Contains(t, stderr, typed, args)
		if slices.Contains(args, "-t") {
			require.Contains(t, stderr, `did you mean "`+b.topic+`"?`, args)
		}
	}
	// A topic that is known stays so when it is empty.
	b.fine("cancel", "-t", "TOPIC", "x")
	for _, args := range [][]string{{"ls", "-t", "TOPIC"}, {"stats", "-t", "TOPIC"}, {"tail", "-t", "TOPIC"}, {"history", "-t", "TOPIC"}, {"dead", "ls", "-t", "TOPIC"}} {
		b.fine(args...)
	}
	for _, prefix := range []string{"", "shop."} {
		b.fine("--prefix", prefix, "queue", "publish", "--queue", "TOPIC", "--text", "x")
		b.fine("--prefix", prefix, "queue", "purge", "--queue", "TOPIC", "--yes")
		b.fine("--prefix", prefix, "queue", "ls", "--queue", "TOPIC")
		b.fine("--prefix", prefix, "queue", "stats", "--queue", "TOPIC")
	}
}

func TestMistakesAreExplained(t *testing.T) {
	b := setup(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"ls", "nosuch"}, "ls takes no argument; did you mean --topic nosuch?"},
		{[]string{"dead", "ls", "no such"}, "dead ls takes no argument; did you mean --topic 'no such'?"},
		{[]string{"queue", "stats", "mail"}, "queue stats takes no argument; did you mean --queue mail?"},
		{[]string{"ls", "-t", "x", "y"}, `ls takes no argument, got "y"`},
		{[]string{"ls", "--topik", "x"}, "did you mean --topic?"},
		{[]string{"schedule", "-t", "x", "--json", "{a:1}"}, "--json: not valid JSON at byte 2: invalid character 'a'"},
		{[]string{"queue", "publish", "--queue", "x", "--json", "[1,"}, "--json: not valid JSON at byte 3: unexpected end"},
		{[]string{"schedule", "-t", "x", "--id", "a", "--debounce", "1s"}, "--debounce needs --in above 0"},
		{[]string{"node", "-t", "x", "--max-concurrent", "abc"}, `--max-concurrent: "abc", want a whole number`},
		{[]string{"schedule", "-t", "x", "--in", "soon"}, `--in: "soon" is not a duration such as 90s`},
		{[]string{"help", "nosuch"}, `no help for "nosuch"`},
	} {
		code, stdout, stderr := b.call(c.args...)
		require.Equal(t, cli.ExitUsage, code, "%v: %s", c.args, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.says, c.args)
		require.NotContains(t, stderr, "strconv")
	}
}

// The error of get names the dead letter that the timer has become.
func TestGetNamesDeadLetter(t *testing.T) {
	b := setup(t)
	conn, err := connection.New(b.rdb, connection.Config{Logger: quiet()})
	require.NoError(t, err)
	sys, err := wakebell.New(nil, conn, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(wakebell.NewTopic[[]byte](b.topic), rejects),
	}})
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	b.fine("schedule", "-t", "TOPIC", "--id", "x")
	require.Eventually(t, func() bool { return b.fine("dead", "ls", "-t", "TOPIC", "-o", "json") != "" }, waitLimit, waitTick)
	require.NoError(t, sys.Stop())
	code, _, stderr := b.call("get", "-t", "TOPIC", "x")
	require.Equal(t, cli.ExitNotFound, code)
	entry := objects(t, b.fine("dead", "ls", "-t", "TOPIC", "-o", "json"))[0]["entry"].(string)
	require.Contains(t, stderr, "wakebell dead show --topic "+b.topic+" "+entry)
	require.NotEmpty(t, b.fine("dead", "show", "-t", "TOPIC", entry))
}

func TestUnknownVariablesAreNamed(t *testing.T) {
	b := fromEnvironment(t, "WAKEBELL_NODE_MAX_CONCURENT=3", "WAKEBELL_HEADER_X_TENANT=a", "WAKEBELL_TOPIC=x", "WAKEBELL_FENCE=1",
		"WAKEBELL_DASH_SERVICE_HOST=10.0.0.1", "WAKEBELL_DASH_PORT_8686_TCP_ADDR=10.0.0.1", "WAKEBELL_PORT=tcp://10.0.0.1:80", "WAKEBELL_BASELINE=", "WAKEBELL_TOKEN=of-clients")
	code, _, stderr := b.call("topics")
	require.Zero(t, code)
	require.Equal(t, "wakebell: warning: unknown variable WAKEBELL_NODE_MAX_CONCURENT; did you mean WAKEBELL_NODE_MAX_CONCURRENT?\n", stderr)
}

// The help of every command fits a terminal that is 80 columns wide, and leaves the global
// flags to "help flags".
func TestHelpFitsTerminal(t *testing.T) {
	t.Parallel()
	root := newRoot(&cli.App{})
	var global []string
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { global = append(global, "--"+f.Name) })
	b := &bundle{t: t}
	flags := b.help("help", "flags")
	for _, name := range global {
		require.Contains(t, flags, name)
	}
	var all func(cmd *cobra.Command)
	all = func(cmd *cobra.Command) {
		help := b.help(append(strings.Fields(cmd.CommandPath())[1:], "--help")...)
		require.NotContains(t, help, "--timeline-key string")
		require.NotRegexp(t, `(?m)^ +--tls-insecure`, help)
		for line := range strings.Lines(help) {
			require.LessOrEqual(t, ansi.StringWidth(strings.TrimSuffix(line, "\n")), 80, "%s: %s", cmd.CommandPath(), line)
		}
		for _, sub := range cmd.Commands() {
			all(sub)
		}
	}
	all(root)
	for line := range strings.Lines(flags) {
		require.LessOrEqual(t, ansi.StringWidth(line), 81, line)
	}
}

// Every command that lists or changes something has -o json. Processes have a log, and
// some commands write files or text for people only.
func TestCommandsHaveJSON(t *testing.T) {
	t.Parallel()
	without := []string{
		"node", "beat", "dash", "demo", "bench", "man", "config check", "config print", "config schema", "health", "rights",
		"schedules export", "topics export", "embedded export",
	}
	for name, cmd := range clitest.Leaves(newRoot(&cli.App{})) {
		require.Equal(t, !slices.Contains(without, name), cmd.Flags().Lookup("output") != nil, name)
	}
}

func TestChangesOfSchedulesAndGatesAsJSON(t *testing.T) {
	b := setup(t)
	name, prefix := b.topic+"-s", "--key-prefix="+b.topic+":"
	stored := objects(t, b.fine("schedules", "put", name, "-t", "TOPIC", "--every", "1h", prefix, "-o", "json"))[0]
	next, err := time.Parse(time.RFC3339Nano, stored["next"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Hour), next, waitLimit)
	require.Contains(t, b.fine("schedules", "put", name, "-t", "TOPIC", "--every", "1h", prefix), name+" runs next at "+stored["next"].(string))
	dump := b.fine("schedules", "export", name, prefix)
	for _, c := range []struct{ command, change string }{{"pause", "paused"}, {"resume", "resumed"}, {"rm", "removed"}} {
		args := []string{"schedules", c.command, name, prefix, "-o", "json"}
		if c.command == "rm" {
			args = append(args, "--yes")
		}
		require.Equal(t, map[string]any{"name": name, "change": c.change}, objects(t, b.fine(args...))[0])
	}
	code, out, stderr := b.callWith(strings.NewReader(dump), "schedules", "import", prefix, "-o", "json")
	require.Zero(t, code, stderr)
	require.Equal(t, map[string]any{"name": name, "change": "imported"}, objects(t, out)[0])
}

// help returns the help of a command.
func (b *bundle) help(args ...string) string {
	b.t.Helper()
	var out, errs bytes.Buffer
	require.Zero(b.t, run(b.t.Context(), args, strings.NewReader(""), &out, &errs), "%v: %s", args, errs.String())
	return out.String()
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func rejects(context.Context, wakebell.Timer[[]byte]) error {
	return wakebell.Reject(errors.New("card declined"))
}
