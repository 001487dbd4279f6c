package gates

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/wakebelltype"
)

// listLine is the JSON line of gate ls.
type listLine struct {
	Gate      string `json:"gate"`
	Fence     uint64 `json:"fence"` // 0: not held
	Holder    string `json:"holder"`
	Confirmed bool   `json:"confirmed"`
	Until     string `json:"until"`
	Waiting   int    `json:"waiting"`
	LastFence uint64 `json:"last_fence"`
	Fault     string `json:"fault"`
}

func newListLine(g wakebelltype.GateInfo) listLine {
	return listLine{
		Gate: g.Name, Fence: g.Holder.Fence, Holder: g.Holder.Process, Confirmed: g.Confirmed,
		Until: output.Stamp(g.Until), Waiting: g.Waiting, LastFence: g.LastFence, Fault: output.Fault(g.Err),
	}
}

func fenceText(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func lsCommand(a *cli.App) *cobra.Command {
	var s settings
	var page cli.PageFlags
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the gates that are in use",
		Long: `Lists the gates that are held or have waiters, by name. Until is the lease
expiry, unless the lease is extended. Fault is the error if a gate cannot be
read; the others are listed. With -o json each is a line with gate, fence,
holder (host:pid:random), confirmed, until, waiting, last_fence and fault.`,
		Example: `  wakebell gate ls
  wakebell gate ls --limit 0 -o json`,
		Args: cli.NoArgs,
	}
	page.Register(cmd, cli.ListLimit)
	a.OutputFlag(cmd)
	keysFlag(cmd, &s.keys)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		return withGates(ctx, a, cmd, s, func(g client) error { return listGates(ctx, a, g, page) })
	})
	return cmd
}

func listGates(ctx context.Context, a *cli.App, of gate.Operator, page cli.PageFlags) error {
	screen := a.Screen()
	list := a.NewListing(page.Limit, output.Text("GATE"), output.Numeric("FENCE"), output.Text("HOLDER"), output.Short("UNTIL"), output.Numeric("WAITING"),
		output.Text("FAULT").AsRare().Styled(output.Bad))
	return cli.PrintAll(list, of.List(ctx, page.Page()), gateCursor, func(g wakebelltype.GateInfo) (any, []string) {
		line := newListLine(g)
		return line, []string{line.Gate, fenceText(line.Fence), line.Holder, screen.Time(g.Until), strconv.Itoa(line.Waiting), line.Fault}
	})
}

func gateCursor(g wakebelltype.GateInfo) string { return g.Cursor }
