package explain

import (
	"context"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Gate explains a gate: who has the turn, since when, and who waits. c tells what
// operators changed. Errors are those of Show.
func Gate(ctx context.Context, g gate.Operator, c Client, name string) (Explanation, error) {
	info, err := g.Show(ctx, name)
	if err != nil {
		return Explanation{}, err
	}
	e, r := ofGate(info), &reader{ctx: ctx, Client: c}
	for _, change := range r.changesOf("gate", name) {
		e.Past = append(e.Past, Step{At: change.At, Text: changeText(change)})
	}
	if !info.Since.IsZero() {
		e.Past = append(e.Past, Step{At: info.Since, Text: fmt.Sprintf("%s got turn %d", info.Holder.Process, info.Holder.Fence)})
	}
	sortSteps(e.Past)
	e.Unread = r.unread
	return e, ctx.Err()
}

// ofGate explains the state of a gate.
func ofGate(g wakebelltype.GateInfo) Explanation {
	name := text.ShellWord(g.Name)
	e := Explanation{State: StateHeld, Commands: []string{"gate show " + name}}
	switch {
	case g.Holder.Fence == 0 && g.LastFence == 0 && g.Waiting == 0:
		e.State, e.Summary = StateUnknown, "it was never used, or was idle for 5 minutes"
		return e
	case g.Holder.Fence == 0:
		e.State, e.Summary = StateFree, "it is free"
		return e
	case !g.Confirmed:
		e.Summary = fmt.Sprintf("turn %d is being handed to %s", g.Holder.Fence, g.Holder.Process)
	default:
		e.Summary = fmt.Sprintf("%s has turn %d", g.Holder.Process, g.Holder.Fence)
	}
	if !g.Since.IsZero() && !g.Now.IsZero() {
		e.Summary += " for " + g.Now.Sub(g.Since).Round(time.Second).String()
	}
	e.Commands = append(e.Commands, "gate release "+name)
	if g.Waiting == 0 {
		return e
	}
	e.State = StateQueued
	e.Summary += fmt.Sprintf("; %d wait", g.Waiting)
	said := fmt.Sprintf("%s has the turn until it releases it, or its lease expires", g.Holder.Process)
	e.Waits = []Wait{{Cause: CauseHolder, Text: said, Since: g.Since, Do: "gate release " + name}}
	return e
}
