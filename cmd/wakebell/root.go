package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/audit"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/bench"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/dash"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/gates"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/node"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/queues"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/schedules"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/stores"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/timers"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/topics"
)

// run is the whole program except for os.Exit.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(ctx, newRoot, args, stdin, stdout, stderr)
}

func newRoot(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "wakebell",
		Short: "Durable timers: stored in Redis, delivered by actors",
		Long: `Wakebell stores timers in Redis and delivers each at or after its due time, at
least once, also after crashes.

--redis or WAKEBELL_REDIS names Redis:
  redis://[user:password@]host:port/db
  unix://[user:password@]/path/to/redis.sock?db=0
  redis+sentinel://[user:password@]host:port,host:port/master/db
      parameters sentinel_username and sentinel_password are for Sentinel itself
  redis+cluster://[user:password@]host:port,host:port    braces around topics
  rediss://, rediss+sentinel://, rediss+cluster://       the same over TLS
The parameter read_from=replicas of Sentinel and Cluster URLs has listings,
statistics and the dashboard read from replicas.
  embedded    a server inside this process, to try Wakebell out
  embedded:DIR?sync=always    a server inside this process that stores everything in a
      directory, which one process can use at a time; sync: always, everysec or no;
      socket=PATH lets others use it as unix://PATH
Prefer the variable for a password: other users can read a command line.

All commands except demo, node, beat, bench, embedded, repair and topics export, import
and move also work without access to Redis: --remote or WAKEBELL_REMOTE names a listening node as host:port. The
connection uses TLS, on loopback only if a TLS flag is given; tls://host:port
and plain://host:port choose explicitly. --token-file names the file with the
token to present.

Every flag has a variable, which a given flag precedes. That of a global flag is
WAKEBELL_ and its name: WAKEBELL_PREFIX. That of another flag has the command
before it: WAKEBELL_NODE_MAX_CONCURRENT, WAKEBELL_DEAD_LS_LIMIT. A flag that can be
repeated takes values with commas between them, or one on each line. An empty
variable counts as none.

Exit codes: 0 success, 1 error, 2 wrong usage, 3 not found: the timer, topic, queue,
gate or schedule that you name is not there. A topic or a queue is there while it has
content or settings, a node handles it, or it is listed by topics; a command that
stores into it or changes its settings only warns if it is not.`,
		Example: `  wakebell demo
  wakebell node --topic invoices --exec './charge.sh'
  wakebell schedule --topic invoices --id inv-42 --in 72h --json '{"n":42}'
  wakebell get --topic invoices inv-42`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          cli.MissingCommand,

		PersistentPreRunE: cli.ReadEnvironment,
	}
	// Arguments are ids, of which there may be millions. Only flags take files.
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.SetFlagErrorFunc(cli.FlagError)
	cli.SetHelp(root)
	a.GlobalFlags(root)
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Timers", timers.Commands(a)},
		{"Topics", append(topics.Commands(a), schedules.ForecastCommand(a))},
		{"Queues, gates and recurring schedules", []*cobra.Command{queues.Command(a), gates.Command(a), schedules.Command(a)}},
		{"Processes", []*cobra.Command{
			node.Command(a), schedules.BeatCommand(a), node.ConfigCommand(a), node.RightsCommand(a), node.HealthCommand(a), dash.Command(a), audit.Command(a), stores.Command(a),
		}},
		{"Trying out and installing", []*cobra.Command{demoCommand(a), bench.Command(a), manCommand(a)}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, cmd := range group.commands {
			cmd.GroupID = group.title
		}
		root.AddCommand(group.commands...)
	}
	return root
}
