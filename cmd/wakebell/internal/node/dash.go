package node

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/webserver"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/dashboard"
	"github.com/wakebell/wakebell/gate"
)

// dashFlags are the flags of node about its dashboard. It is the command dash in the
// process of the node, for a store that one process can use at a time.
type dashFlags struct{ server webserver.Options }

func (f *dashFlags) register(cmd *cobra.Command) {
	f.server.Names = webserver.Names{Address: "dash", Users: "dash-users", Cert: "dash-cert", Key: "dash-key", Insecure: "dash-insecure"}
	flags := cmd.Flags()
	flags.StringVar(&f.server.Address, "dash", "", "`address` to serve the dashboard at, as 127.0.0.1:8686 (see dash); empty: none")
	flags.StringVar(&f.server.Path, "dash-path", "", "`path` under which browsers reach the dashboard, as /wakebell")
	flags.StringVar(&f.server.Users, "dash-users", "", "`file` with the users of the dashboard, a line name:role:secret each")
	flags.StringVar(&f.server.Cert, "dash-cert", "", "PEM `file` with the certificate of the dashboard")
	flags.StringVar(&f.server.Key, "dash-key", "", "PEM `file` with its key")
	flags.BoolVar(&f.server.Insecure, "dash-insecure", false, "allow a dashboard beyond loopback without TLS")
	flags.BoolVar(&f.server.Writable, "dash-writable", false, "permit changes to operators of the dashboard")
	flags.BoolVar(&f.server.Hide, "dash-hide-payloads", false, "show neither bodies nor values of headers in the dashboard")
	cli.CompleteFiles(cmd, "dash-users", "dash-cert", "dash-key")
}

// combined checks which flags go together.
func (f *dashFlags) combined() error {
	if f.server.Address != "" {
		return f.server.Check()
	}
	s := f.server
	if s.Path != "" || s.Users != "" || s.Cert != "" || s.Key != "" || s.Insecure || s.Writable || s.Hide {
		return cli.Usagef("--dash-path, --dash-users, --dash-cert, --dash-key, --dash-insecure, --dash-writable and --dash-hide-payloads go with --dash")
	}
	return nil
}

// serveDash serves the dashboard of a System until stop is called. Without --dash it does
// nothing.
func (f *nodeFlags) serveDash(ctx context.Context, a *cli.App, sys *wakebell.System, conn *connection.Connection, log *slog.Logger, failed func(error)) (stop func() error, err error) {
	if err := f.dash.combined(); err != nil {
		return nil, err
	}
	if f.dash.server.Address == "" {
		return func() error { return nil }, nil
	}
	cfg, err := f.dash.server.Config()
	if err != nil {
		return nil, err
	}
	cfg.QueueNames = f.named()
	chain, err := a.Reading()
	if err != nil {
		return nil, err
	}
	shown, err := connection.WithoutRedis(connection.Config{Payloads: chain, Logger: log})
	if err != nil {
		return nil, err
	}
	gates, err := gate.New(conn, gate.Config{})
	if err != nil {
		return nil, err
	}
	client := sys.Client()
	d, err := dashboard.New(shown, dashboard.Operators{Timers: client, Queues: client.Queues(), Schedules: client.Schedules(), Gates: gates}, cfg)
	if err != nil {
		return nil, errors.Join(err, gates.Close())
	}
	end, err := webserver.Start(ctx, &f.dash.server, d, log, failed)
	if err != nil {
		return nil, errors.Join(err, gates.Close())
	}
	return func() error { return errors.Join(end(), gates.Close()) }, nil
}
