package main

import (
	"context"
	"errors"
	"fmt"
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
		a.gateGuardCommand(), a.gateRepairCommand())
	return cmd
}

// withGates runs fn with Gates of the Redis that the flags name.
func (a *app) withGates(cfg wakebell.GatesConfig, fn func(*wakebell.Gates) error) (err error) {
	conn, err := a.connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	gates, err := wakebell.NewGates(conn.rdb, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gates.Close()) }()
	return fn(gates)
}

// withGatekeeper is withGates for what a node does as well.
func (a *app) withGatekeeper(ctx context.Context, cmd *cobra.Command, cfg wakebell.GatesConfig, fn func(wakebell.Gatekeeper) error) error {
	if a.remoteAddress() == "" {
		return a.withGates(cfg, func(gates *wakebell.Gates) error { return fn(gates) })
	}
	if err := nodesOwn(cmd, "keys", "signal-ttl"); err != nil {
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
		Until: stamp(g.Until), Waiting: g.Waiting, LastFence: g.LastFence,
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
		Long: `Lists the gates that somebody holds or waits for, in no order. Until is when the
lease ends unless it is extended. With -o json each is a line with gate, fence,
holder (host:pid:random), confirmed, until, waiting and last_fence.`,
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
		return a.withGates(cfg, func(gates *wakebell.Gates) error { return a.gateLs(ctx, gates, limit) })
	})
	return cmd
}

func (a *app) gateLs(ctx context.Context, gates *wakebell.Gates, limit int) error {
	list := a.newListing(limit, "GATE", "FENCE", "HOLDER", "UNTIL", "WAITING")
	for g, err := range gates.List(ctx) {
		if err != nil {
			return err
		}
		if list.full() {
			break
		}
		line := newGateListLine(g)
		if err := list.add(line, line.Gate, fenceText(line.Fence), line.Holder, line.Until, strconv.Itoa(line.Waiting)); err != nil {
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
and the newest token that each guarded resource has seen. A gate that was never
used is one that nobody holds. With -o json it is one line with the fields of
gate ls, waiters (fence, process) and guard.`,
		Example: `  wakebell gate show deploy
  wakebell gate show deploy -o json | jq .fence`,
		Args: cobra.ExactArgs(1),
	}
	a.outputFlag(cmd)
	gateKeysFlag(cmd, &cfg.Keys)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		return a.withGates(cfg, func(gates *wakebell.Gates) error { return a.gateShow(ctx, gates, args[0]) })
	})
	return cmd
}

func (a *app) gateShow(ctx context.Context, gates *wakebell.Gates, name string) error {
	g, err := gates.Show(ctx, name)
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

func (a *app) gateReleaseCommand() *cobra.Command {
	var cfg wakebell.GatesConfig
	var force bool
	cmd := &cobra.Command{
		Use:   "release NAME --force",
		Short: "Take a gate away from its holder",
		Long: `Takes the turn away from whoever has it, and hands over to the next. The holder
is told, but may not know yet, or may be unable to hear: make sure that it has
ended, or that what it writes to refuses its token. 3 is the exit code when
nobody holds the gate.`,
		Example: `  wakebell gate release deploy --force`,
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&force, "force", false, "required, because nobody else's gate is released by accident")
	gateKeysFlag(cmd, &cfg.Keys)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		if !force {
			return usagef("--force is required")
		}
		return a.withGates(cfg, func(gates *wakebell.Gates) error { return a.gateRelease(ctx, gates, args[0]) })
	})
	return cmd
}

func (a *app) gateRelease(ctx context.Context, gates *wakebell.Gates, name string) error {
	g, err := gates.Show(ctx, name)
	if err != nil {
		return err
	}
	released := false
	if g.Holder.Fence != 0 {
		if released, err = gates.ForceRelease(ctx, name, g.Holder.Fence); err != nil {
			return err
		}
	}
	if !released {
		return fmt.Errorf("%w: nobody holds gate %q", errNotHeld, name)
	}
	return a.printf("released %d of %s\n", g.Holder.Fence, escape(g.Holder.Process))
}

// errNotHeld is what exit code 3 says of gates.
var errNotHeld = errors.New("not held")

func (a *app) gateGuardCommand() *cobra.Command {
	var cfg wakebell.GatesConfig
	cmd := &cobra.Command{
		Use:   "guard NAME RESOURCE FENCE",
		Short: "Accept a token for a resource, or refuse an old one",
		Long: `Remembers the token as the newest that the resource has seen, or exits with 1
because it has seen a newer one. For commands of gate hold, before they write.`,
		Example: `  wakebell gate hold deploy --exec 'wakebell gate guard deploy bucket $WAKEBELL_FENCE && ./upload.sh'`,
		Args:    cobra.ExactArgs(3),
	}
	gateKeysFlag(cmd, &cfg.Keys)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		fence, err := strconv.ParseUint(args[2], 10, 64)
		if err != nil {
			return usagef("FENCE: %q is no fencing token", args[2])
		}
		return a.withGatekeeper(ctx, cmd, cfg, func(gates wakebell.Gatekeeper) error {
			return gates.Guard(ctx, args[0], args[1], fence)
		})
	})
	return cmd
}

// gateRepairLine is what gate repair prints.
type gateRepairLine struct {
	Gate    string `json:"gate"`
	Before  uint64 `json:"before"`
	After   uint64 `json:"after"`
	Removed int    `json:"removed"`
}

func (a *app) gateRepairCommand() *cobra.Command {
	var cfg wakebell.GatesConfig
	var floor uint64
	cmd := &cobra.Command{
		Use:   "repair NAME",
		Short: "Lift the fencing tokens of a gate above those that were used",
		Long: `For a gate whose tokens have stepped back, because Redis lost data and its clock
was set back: lifts them above all that the guard has seen, and above --floor.
A turn below is taken away, and those who wait with tickets below take new ones.
On a gate that is well it changes nothing. Prints one line of JSON: gate,
before and after (the last token issued), removed (tickets).`,
		Example: `  wakebell gate repair deploy
  wakebell gate repair deploy --floor 1795246947173773`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().Uint64Var(&floor, "floor", 0, "a `token` that a resource outside has seen")
	gateKeysFlag(cmd, &cfg.Keys)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		return a.withGates(cfg, func(gates *wakebell.Gates) error {
			r, err := gates.Repair(ctx, args[0], floor)
			if err != nil {
				return err
			}
			return a.printJSON(gateRepairLine{args[0], r.Before, r.After, r.Removed})
		})
	})
	return cmd
}
