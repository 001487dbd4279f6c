package gates

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/wakebelltype"
)

// gateLine is the JSON line of gate show.
type gateLine struct {
	listLine
	Waiters []ticketLine      `json:"waiters"`
	Guard   map[string]uint64 `json:"guard"`
	Since   string            `json:"since"`
	Holds   []holdsLine       `json:"holds"`
}

// holdsLine counts turns that were held up to a time; null: for longer.
type holdsLine struct {
	UpToS *float64 `json:"up_to_s"`
	Turns int64    `json:"turns"`
}

type ticketLine struct {
	Fence   uint64 `json:"fence"`
	Process string `json:"process"`
}

func newGateLine(g wakebelltype.GateInfo) gateLine {
	line := gateLine{newListLine(g), []ticketLine{}, g.Guard, output.Stamp(g.Since), []holdsLine{}}
	for _, w := range g.Waiters {
		line.Waiters = append(line.Waiters, ticketLine{w.Fence, w.Process})
	}
	for _, h := range g.Holds {
		held := holdsLine{Turns: h.Turns}
		if h.UpTo > 0 {
			held.UpToS = new(h.UpTo.Seconds())
		}
		line.Holds = append(line.Holds, held)
	}
	return line
}

func showCommand(a *cli.App) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the holder and the waiters of a gate",
		Long: `Shows a gate: its holder with the fencing token and since when it has the turn, the
first 100 waiters in order, how long the turns of the last 7 days were held,
and the newest token that each guarded resource has seen, for up to 1,000
resources. The exit code is 3 for a gate that was never used, or was idle for 5 minutes.
With -o json it is one line with the fields of gate ls, waiters (fence, process),
guard, since and holds (up_to_s, null for longer, and turns).`,
		Example: `  wakebell gate show deploy
  wakebell gate show deploy -o json | jq .fence`,
		Args: cobra.ExactArgs(1),
	}
	a.OutputFlag(cmd)
	keysFlag(cmd, &s.keys)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		return withGates(ctx, a, cmd, s, func(g client) error { return showGate(ctx, a, g, args[0]) })
	})
	return cmd
}

func showGate(ctx context.Context, a *cli.App, of gate.Operator, name string) error {
	g, err := of.Show(ctx, name)
	if err != nil {
		return err
	}
	if g.Holder.Fence == 0 && g.LastFence == 0 && g.Waiting == 0 && len(g.Guard) == 0 && len(g.Holds) == 0 {
		return cli.NotFoundf("no such gate: %q was never used, or was idle for 5 minutes", name)
	}
	line := newGateLine(g)
	if a.WantsJSON() {
		return a.PrintJSON(line)
	}
	rows := [][2]string{
		{"gate", line.Gate},
		{"fence", fenceText(line.Fence)},
		{"holder", line.Holder},
		{"confirmed", output.YesNo(line.Confirmed)},
		{"since", a.Screen().Time(g.Since)},
		{"until", a.Screen().Time(g.Until)},
		{"last fence", fenceText(line.LastFence)},
		{"waiting", strconv.Itoa(line.Waiting)},
	}
	for _, w := range line.Waiters {
		rows = append(rows, [2]string{"waiter", fenceText(w.Fence) + "  " + w.Process})
	}
	for _, resource := range slices.Sorted(maps.Keys(line.Guard)) {
		rows = append(rows, [2]string{"guard", fenceText(line.Guard[resource]) + "  " + resource})
	}
	longest := ""
	for _, h := range g.Holds {
		name := "over " + longest
		if h.UpTo > 0 {
			longest = boundText(h.UpTo)
			name = "up to " + longest
		}
		if h.Turns > 0 {
			rows = append(rows, [2]string{"held " + name, output.Number(h.Turns) + " turns"})
		}
	}
	return a.PrintRows(rows)
}

// boundText writes a bound of holds: 10ms, 1m, 1h.
func boundText(d time.Duration) string {
	if d < time.Minute {
		return d.String()
	}
	return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
}
