package dashboard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/wakebell/wakebell/dashboard/internal/show"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	gatesPage  = 50
	guardsShow = 100
)

type gatesData struct {
	Rows        []wakebelltype.GateInfo
	Next, First string
}

// listGates reads a page of gates and one more.
func (d *Dashboard) listGates(ctx context.Context, after string) (rows []wakebelltype.GateInfo, err error) {
	for g, err := range d.op.Gates.List(ctx, wakebelltype.Page{After: after, Limit: gatesPage + 1}) {
		if err != nil {
			return nil, fmt.Errorf("list gates: %w", err)
		}
		g.Now = time.Time{} // it differs each time
		rows = append(rows, g)
	}
	return rows, nil
}

func (d *Dashboard) gatesPage(ctx context.Context, r *request) (page, error) {
	after := r.get("after")
	data := gatesData{}
	var err error
	if data.Rows, err = d.listGates(ctx, after); err != nil {
		return page{}, err
	}
	if len(data.Rows) > gatesPage {
		data.Rows = data.Rows[:gatesPage]
		data.Next = d.link("gates", "after", data.Rows[gatesPage-1].Cursor)
	}
	if after != "" {
		data.First = d.link("gates")
	}
	return page{template: "gates", title: "Gates", section: "gates", live: watching("gates", "after", after), data: data}, nil
}

type guarded struct {
	Resource string
	Fence    uint64
}

type gateData struct {
	Gate   wakebelltype.GateInfo
	Guards []guarded
	Cut    bool // there are more guarded resources
	Holds  []heldRow
	Held   int64 // turns of all rows
}

// heldRow counts the turns that were held for about as long.
type heldRow struct {
	Label string
	Turns int64
}

// heldRows are the rows of the durations of a gate's turns.
func heldRows(holds []wakebelltype.GateHolds) (rows []heldRow, all int64) {
	before := time.Duration(0)
	for _, h := range holds {
		row := heldRow{"up to " + show.Span(h.UpTo), h.Turns}
		switch {
		case h.UpTo == 0:
			row.Label = "over " + show.Span(before)
		case before > 0:
			row.Label = show.Span(before) + " to " + show.Span(h.UpTo)
		}
		rows, all, before = append(rows, row), all+h.Turns, h.UpTo
	}
	return rows, all
}

func (d *Dashboard) gatePage(ctx context.Context, r *request) (page, error) {
	name, err := r.required("name")
	if err != nil {
		return page{}, err
	}
	g, err := d.op.Gates.Show(ctx, name)
	if err != nil {
		return page{}, fmt.Errorf("gate %s: %w", show.Short(64, name), err)
	}
	data := gateData{Gate: g}
	data.Holds, data.Held = heldRows(g.Holds)
	for _, resource := range slices.Sorted(maps.Keys(g.Guard)) {
		if len(data.Guards) == guardsShow {
			data.Cut = true
			break
		}
		data.Guards = append(data.Guards, guarded{resource, g.Guard[resource]})
	}
	return page{template: "gate", title: "Gate " + name, section: "gates", live: watching("gate", "name", name), data: data}, nil
}
