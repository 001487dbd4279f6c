// Package joined reads joins for pages, and draws their parts.
package joined

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/fan"
	"github.com/wakebell/wakebell/internal/joinref"
	"github.com/wakebell/wakebell/wakebelltype"
)

// MaxParts bounds the parts of a join that one page reads and draws.
const MaxParts = 100

// Client reads and ends joins. *wakebell.Client implements it.
type Client interface {
	Join(ctx context.Context, topic, id string) (wakebelltype.Join, error)
	Parts(ctx context.Context, topic, id string, p wakebelltype.Page) iter.Seq2[wakebell.PartEnd, error]
	CloseJoin(ctx context.Context, topic, id string) error
	CancelJoin(ctx context.Context, topic, id string) (parts int64, err error)
}

// Timers reads the timers of parts.
type Timers interface {
	Get(ctx context.Context, topic, id string) (wakebell.Info, wakebell.Content, error)
}

// Gone is the state of a part that is not stored, and whose end was not noted yet.
const Gone = "gone"

// Part is a part of a join as a page shows it.
type Part struct {
	wakebell.PartEnd
	State string    // its End, the state of its timer, or Gone
	Due   time.Time // of a timer that has not ended
}

// View is the join of a timer, and a page of its parts.
type View struct {
	Topic, ID string
	Join      wakebelltype.Join
	Rows      []Part
	Drawing   Drawing
	Next      string // cursor of the next page; empty: this is the last one
	Err       error  // why parts could not be read
}

// Cut reports whether there are parts that the page does not have.
func (v View) Cut() int64 { return max(0, v.Join.Parts-int64(len(v.Rows))) }

// Read reads the join of a timer and up to MaxParts of its parts after a cursor. Those that
// have not ended have the states of their timers, which stateOf names. The error is that of
// Join.
func Read(ctx context.Context, c Client, timers Timers, stateOf func(topic string, i wakebell.Info) string, topic, id, after string) (v View, err error) {
	v.Topic, v.ID = topic, id
	if v.Join, err = c.Join(ctx, topic, id); err != nil {
		return v, err
	}
	last := ""
	for end, err := range c.Parts(ctx, topic, id, wakebelltype.Page{After: after, Limit: MaxParts}) {
		if v.Err = err; err != nil {
			break
		}
		v.Rows, last = append(v.Rows, Part{PartEnd: end, State: string(end.End)}), end.Cursor
	}
	if seen, err := strconv.ParseInt(last, 10, 64); err == nil && seen < v.Join.Parts {
		v.Next = last
	}
	_, failed := fan.Out(ctx, len(v.Rows), func(i int) {
		if p := &v.Rows[i]; p.End == "" {
			p.State, p.Due = state(ctx, timers, stateOf, p.Part)
		}
	})
	if v.Err == nil {
		v.Err = failed
	}
	v.Drawing = draw(v)
	return v, nil
}

// state returns the state of a part that has not ended, and when it is due.
func state(ctx context.Context, timers Timers, stateOf func(topic string, i wakebell.Info) string, p wakebelltype.Part) (string, time.Time) {
	info, _, err := timers.Get(ctx, p.Topic, p.ID)
	switch {
	case errors.Is(err, wakebell.ErrNotFound):
		return Gone, time.Time{}
	case err != nil && info.ID == "":
		return "unknown", time.Time{}
	default: // a body that is too large is no matter
		return stateOf(p.Topic, info), info.Due
	}
}

// Waiter is a join that waits for a part.
type Waiter struct {
	wakebelltype.Part // its timer
	Join              wakebelltype.Join
	Err               error
}

// Waiters returns the joins of a part with these headers. Topics lose the prefix.
func Waiters(ctx context.Context, c Client, headers wakebell.Headers, prefix string) []Waiter {
	const most = 16 // of a header
	refs := joinref.Of(headers)
	list := make([]Waiter, min(most, len(refs)))
	for i := range list {
		list[i].Part = wakebelltype.Part{Topic: strings.TrimPrefix(refs[i].Topic, prefix), ID: refs[i].ID}
	}
	_, _ = fan.Out(ctx, len(list), func(i int) { // a call that panicked leaves a join without counts
		list[i].Join, list[i].Err = c.Join(ctx, list[i].Topic, list[i].ID)
	})
	return list
}

// The geometry of a Drawing.
const (
	cell   = 18 // a square and the gap behind it
	square = 14
	inRow  = 20
)

// Drawing is the parts of a page as squares, with lines to the square of their join.
type Drawing struct {
	Width, Height int
	Label         string
	Nodes         []Node
	Lines         []Line
	Join          Node
}

// Node is a square.
type Node struct {
	X, Y, Size int
	State      string
	Title      string
	Part       wakebelltype.Part
}

// Line connects squares.
type Line struct{ X1, Y1, X2, Y2 int }

// draw puts parts into rows. Each row has a line to a trunk, and the trunk one to the join.
func draw(v View) (d Drawing) {
	n := len(v.Rows)
	if n == 0 {
		return d
	}
	rows := (n + inRow - 1) / inRow
	trunk := min(n, inRow)*cell + square/2
	middle := rows * cell / 2
	d.Width, d.Height = trunk+cell+square, rows*cell
	for i, p := range v.Rows {
		x, y := i%inRow*cell, i/inRow*cell
		if i%inRow == 0 {
			d.Lines = append(d.Lines, Line{x + square, y + square/2, trunk, y + square/2})
		}
		d.Nodes = append(d.Nodes, Node{X: x, Y: y, Size: square, State: p.State, Title: fmt.Sprintf("%s of %s: %s", p.ID, p.Topic, p.State), Part: p.Part})
	}
	first, last := square/2, (rows-1)*cell+square/2
	d.Lines = append(d.Lines, Line{trunk, first, trunk, last}, Line{trunk, middle - cell/2 + square/2, trunk + cell, middle - cell/2 + square/2})
	d.Join = Node{X: trunk + cell, Y: middle - cell/2, Size: square, State: "pending", Title: v.ID, Part: wakebelltype.Part{Topic: v.Topic, ID: v.ID}}
	if v.Join.Complete() {
		d.Join.State = "done"
	}
	d.Label = fmt.Sprintf("%d of %d parts of %s, by their states", n, v.Join.Parts, v.ID)
	return d
}
