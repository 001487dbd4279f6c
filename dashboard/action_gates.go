package dashboard

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/wakebell/wakebell/dashboard/internal/show"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (d *Dashboard) gateActions() map[string]action {
	return map[string]action{
		"release-gate": {"gates", d.askRelease, d.doRelease},
		"repair-gate":  {"gates", d.askRepair, d.doRepair},
		"remove-gate":  {"gates", d.askRemove, d.doRemove},
	}
}

func (d *Dashboard) gateLink(r *request) string { return d.link("gate", "name", r.get("name")) }

func (d *Dashboard) aboutGate(ctx context.Context, r *request) (wakebelltype.GateInfo, error) {
	name, err := r.required("name")
	if err != nil {
		return wakebelltype.GateInfo{}, err
	}
	return d.op.Gates.Show(ctx, name)
}

func (d *Dashboard) askRelease(ctx context.Context, r *request) (question, error) {
	g, err := d.aboutGate(ctx, r)
	fence := strconv.FormatUint(g.Holder.Fence, 10)
	q := question{
		Title: "Release " + show.Short(64, r.get("name")) + " by force", Button: "Take the turn away", Danger: true, Back: d.gateLink(r),
		Text: []string{
			fmt.Sprintf("1 turn: %s holds the gate with fence %s, and loses it. %s.", show.Short(100, g.Holder.Process), fence, waits(g.Waiting)),
			"The holder may not know of the loss yet. Make sure that it has stopped, or that its writes are guarded.",
		},
		Fields: []field{{Name: "fence", Label: "Fence of the turn", Kind: "number", Value: fence, Required: true}},
	}
	if err == nil && g.Holder.Fence == 0 {
		err = invalid("gate", "it is free; there is no turn to release")
	}
	return q, err
}

func waits(n int) string {
	if n == 1 {
		return "1 waiter is next"
	}
	return show.Things(int64(n), "waiter") + " are behind it"
}

func (d *Dashboard) doRelease(ctx context.Context, r *request, form url.Values) (result, error) {
	fence, err := strconv.ParseUint(form.Get("fence"), 10, 64)
	if err != nil {
		return result{}, invalid("fence", "want a number")
	}
	had, err := d.op.Gates.ForceRelease(ctx, r.get("name"), fence)
	text := "The turn is taken away."
	if !had {
		text = "Nothing was done: this fence did not have the turn any more."
	}
	return result{text: text, to: d.gateLink(r)}, err
}

func (d *Dashboard) askRepair(ctx context.Context, r *request) (question, error) {
	g, err := d.aboutGate(ctx, r)
	return question{
		Title: "Repair " + show.Short(64, r.get("name")), Button: "Repair", Back: d.gateLink(r),
		Text: []string{
			fmt.Sprintf("This raises the fencing tokens of 1 gate above all that its guard has seen (%s), and above the floor.", show.Things(int64(len(g.Guard)), "resource")),
			fmt.Sprintf("A turn with a lower token is lost; %s with lower tickets take new ones.", show.Things(int64(g.Waiting), "waiter")),
		},
		Fields: []field{{Name: "floor", Label: "Floor", Kind: "number", Value: "0", Hint: "A token that another resource has seen, or 0."}},
	}, err
}

func (d *Dashboard) doRepair(ctx context.Context, r *request, form url.Values) (result, error) {
	floor, err := strconv.ParseUint(form.Get("floor"), 10, 64)
	if err != nil {
		return result{}, invalid("floor", "want a number from 0")
	}
	done, err := d.op.Gates.Repair(ctx, r.get("name"), floor)
	text := fmt.Sprintf("The next tokens are above %d; %s removed, %s of the guard cleared.",
		done.After, show.Things(int64(done.Removed), "ticket"), show.Things(int64(done.Cleared), "resource"))
	return result{text: text, to: d.gateLink(r)}, err
}

func (d *Dashboard) askRemove(ctx context.Context, r *request) (question, error) {
	g, err := d.aboutGate(ctx, r)
	held := "It is free."
	if g.Holder.Fence > 0 {
		held = "It is held by " + show.Short(100, g.Holder.Process) + "."
	}
	return question{
		Title: "Remove " + show.Short(64, r.get("name")), Button: "Remove", Danger: true, Back: d.gateLink(r),
		Text: []string{
			fmt.Sprintf("This removes 1 gate with %s and its guard. %s Idle gates expire by themselves.", show.Things(int64(g.Waiting), "waiter"), held),
		},
		Fields: []field{{Name: "force", Label: "Remove it although it is held or has waiters; the turn is lost", Kind: "check"}},
	}, err
}

func (d *Dashboard) doRemove(ctx context.Context, r *request, form url.Values) (result, error) {
	was, err := d.op.Gates.Remove(ctx, r.get("name"), form.Get("force") != "")
	text := "The gate is removed."
	if !was {
		text = "The gate did not exist."
	}
	return result{text: text, to: d.link("gates")}, err
}
