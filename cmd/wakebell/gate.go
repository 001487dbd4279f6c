package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/remote"
)

func (a *app) gateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gate",
		Short: "Hold gates, look at them and repair them",
		Long: `A gate is a lock that is handed over in the order in which it was asked for.
Each turn has a fencing token, which only grows: a resource that refuses older
tokens is safe from a holder that has lost its turn and does not know yet.`,
		Example: `  wakebell gate hold deploy --exec './deploy.sh'
  wakebell gate show deploy
  wakebell gate release deploy --force`,
		RunE: missingCommand,
	}
	cmd.AddCommand(a.gateHoldCommand(), a.gateLsCommand(), a.gateShowCommand(), a.gateReleaseCommand(),
		a.gateGuardCommand(), a.gateRepairCommand(), a.gateRmCommand())
	return cmd
}

func (a *app) withRedisGates(cfg wakebell.GatesConfig, fn func(gates) error) (err error) {
	conn, err := a.connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	conn.watch(a, 0)
	g, err := wakebell.NewGates(conn.rdb, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	return fn(g)
}

// gates is what is done at gates here, and over a node.
type gates interface {
	wakebell.Gatekeeper
	wakebell.GateOperator
}

// withGates runs fn with the gates of the node of --remote or, without it, of the
// Redis that the flags name.
func (a *app) withGates(ctx context.Context, cmd *cobra.Command, cfg wakebell.GatesConfig, fn func(gates) error) error {
	if a.remoteAddress() == "" {
		return a.withRedisGates(cfg, fn)
	}
	if err := nodesOwn(cmd, "keys", "signal-ttl", "elsewhere"); err != nil {
		return err
	}
	a.remote.turnTTL = cfg.LeaseTTL
	return a.withNode(ctx, func(c *remote.Client) error { return fn(c.Gates()) })
}

// gateListLine is a gate as gate ls prints it.
type gateListLine struct {
	Gate      string `json:"gate"`
	Fence     uint64 `json:"fence"` // 0: nobody has the turn
	Holder    string `json:"holder"`
	Confirmed bool   `json:"confirmed"`
	Until     string `json:"until"`
	Waiting   int    `json:"waiting"`
	LastFence uint64 `json:"last_fence"`
	Fault     string `json:"fault"`
}

// gateLine is a gate as gate show prints it.
type gateLine struct {
	gateListLine
	Waiters []gateTicketLine  `json:"waiters"`
	Guard   map[string]uint64 `json:"guard"`
}

type gateTicketLine struct {
	Fence   uint64 `json:"fence"`
	Process string `json:"process"`
}

func newGateListLine(g wakebell.GateInfo) gateListLine {
	return gateListLine{
		Gate: g.Name, Fence: g.Holder.Fence, Holder: g.Holder.Process, Confirmed: g.Confirmed,
		Until: stamp(g.Until), Waiting: g.Waiting, LastFence: g.LastFence, Fault: fault(g.Err),
	}
}

func newGateLine(g wakebell.GateInfo) gateLine {
	line := gateLine{newGateListLine(g), []gateTicketLine{}, g.Guard}
	for _, w := range g.Waiters {
		line.Waiters = append(line.Waiters, gateTicketLine{w.Fence, w.Process})
	}
	return line
}

func fenceText(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func (a *app) gateLsCommand() *cobra.Command {
	var cfg wakebell.GatesConfig
	var limit int
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the gates that are in use",
		Long: `Lists the gates that are held or waited for, in no order. Until is when the lease
ends unless it is extended. What cannot be read of a gate is its fault; the others
are listed. With -o json each is a line with gate, fence, holder
(host:pid:random), confirmed, until, waiting, last_fence and fault.`,
		Example: `  wakebell gate ls
  wakebell gate ls --limit 0 -o json`,
		Args: cobra.NoArgs,
	}
	limitFlag(cmd, &limit)
	a.outputFlag(cmd)
	gateKeysFlag(cmd, &cfg.Keys)
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		if limit < 0 {
			return usagef("--limit: %d is negative", limit)
		}
		return a.withGates(ctx, cmd, cfg, func(g gates) error { return a.gateLs(ctx, g, limit) })
	})
	return cmd
}

func (a *app) gateLs(ctx context.Context, of wakebell.GateOperator, limit int) error {
	list := a.newListing(limit, "GATE", "FENCE", "HOLDER", "UNTIL", "WAITING", "FAULT")
	for g, err := range of.List(ctx) {
		if err != nil {
			return err
		}
		if list.full() {
			break
		}
		line := newGateListLine(g)
		if err := list.add(line, line.Gate, fenceText(line.Fence), line.Holder, line.Until, strconv.Itoa(line.Waiting), line.Fault); err != nil {
			return err
		}
	}
	return list.end()
}

func (a *app) gateShowCommand() *cobra.Command {
	var cfg wakebell.GatesConfig
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show who holds a gate and who waits",
		Long: `Shows a gate: the turn with its fencing token, the first 100 waiters in order,
and the newest token that each guarded resource has seen, of up to 1,000
resources. A gate that was never used, or was idle for 5 minutes, is one without a
holder. With -o json it is one line with the fields of
gate ls, waiters (fence, process) and guard.`,
		Example: `  wakebell gate show deploy
  wakebell gate show deploy -o json | jq .fence`,
		Args: cobra.ExactArgs(1),
	}
	a.outputFlag(cmd)
	gateKeysFlag(cmd, &cfg.Keys)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		return a.withGates(ctx, cmd, cfg, func(g gates) error { return a.gateShow(ctx, g, args[0]) })
	})
	return cmd
}

func (a *app) gateShow(ctx context.Context, of wakebell.GateOperator, name string) error {
	g, err := of.Show(ctx, name)
	if err != nil {
		return err
	}
	line := newGateLine(g)
	if a.wantsJSON() {
		return a.printJSON(line)
	}
	rows := [][2]string{
		{"gate", line.Gate},
		{"fence", fenceText(line.Fence)},
		{"holder", line.Holder},
		{"confirmed", yesNo(line.Confirmed)},
		{"until", line.Until},
		{"last fence", fenceText(line.LastFence)},
		{"waiting", strconv.Itoa(line.Waiting)},
	}
	for _, w := range line.Waiters {
		rows = append(rows, [2]string{"waiter", fenceText(w.Fence) + "  " + w.Process})
	}
	for _, resource := range slices.Sorted(maps.Keys(line.Guard)) {
		rows = append(rows, [2]string{"guard", fenceText(line.Guard[resource]) + "  " + resource})
	}
	return a.printRows(rows)
}
