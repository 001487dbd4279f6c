package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/wakebelltype"
)

// gateListLine is the JSON line of gate ls.
type gateListLine struct {
	Gate      string `json:"gate"`
	Fence     uint64 `json:"fence"` // 0: not held
	Holder    string `json:"holder"`
	Confirmed bool   `json:"confirmed"`
	Until     string `json:"until"`
	Waiting   int    `json:"waiting"`
	LastFence uint64 `json:"last_fence"`
	Fault     string `json:"fault"`
}

func newGateListLine(g wakebelltype.GateInfo) gateListLine {
	return gateListLine{
		Gate: g.Name, Fence: g.Holder.Fence, Holder: g.Holder.Process, Confirmed: g.Confirmed,
		Until: stamp(g.Until), Waiting: g.Waiting, LastFence: g.LastFence, Fault: fault(g.Err),
	}
}

func fenceText(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func gateLsCommand(a *app) *cobra.Command {
	var cfg gate.Config
	var page pageFlags
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the gates that are in use",
		Long: `Lists the gates that are held or have waiters, by name. Until is the lease
expiry, unless the lease is extended. Fault is the error if a gate cannot be
read; the others are listed. With -o json each is a line with gate, fence,
holder (host:pid:random), confirmed, until, waiting, last_fence and fault.`,
		Example: `  wakebell gate ls
  wakebell gate ls --limit 0 -o json`,
		Args: cobra.NoArgs,
	}
	page.register(cmd, listLimit)
	a.outputFlag(cmd)
	gateKeysFlag(cmd, &cfg.Keys)
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		return withGates(ctx, a, cmd, cfg, func(g gates) error { return gateLs(ctx, a, g, page) })
	})
	return cmd
}

func gateLs(ctx context.Context, a *app, of gate.Operator, page pageFlags) error {
	list := a.newListing(page.limit, "GATE", "FENCE", "HOLDER", "UNTIL", "WAITING", "FAULT")
	return printAll(list, of.List(ctx, page.page()), gateCursor, func(g wakebelltype.GateInfo) (any, []string) {
		line := newGateListLine(g)
		return line, []string{line.Gate, fenceText(line.Fence), line.Holder, line.Until, strconv.Itoa(line.Waiting), line.Fault}
	})
}

func gateCursor(g wakebelltype.GateInfo) string { return g.Cursor }
