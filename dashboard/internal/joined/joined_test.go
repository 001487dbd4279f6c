package joined

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

// client has a join with parts p0, p1 and so on, of which every third is done.
type client struct {
	Client
	parts int
	gets  chan string
}

func (c client) Join(_ context.Context, _, id string) (wakebelltype.Join, error) {
	if id != "r" {
		return wakebelltype.Join{}, wakebell.ErrNotFound
	}
	return wakebelltype.Join{Parts: int64(c.parts), Done: int64(c.parts+2) / 3}, nil
}

func (c client) Parts(_ context.Context, _, _ string, p wakebelltype.Page) iter.Seq2[wakebell.PartEnd, error] {
	return func(yield func(wakebell.PartEnd, error) bool) {
		from, _ := strconv.Atoi(p.After)
		for i := from; i < min(c.parts, from+p.Limit); i++ {
			end := wakebell.PartEnd{PartEnd: wakebelltype.PartEnd{Part: wakebelltype.Part{Topic: "t", ID: fmt.Sprint("p", i)}, Cursor: strconv.Itoa(i + 1)}}
			if i%3 == 0 {
				end.End = wakebelltype.EndDone
			}
			if !yield(end, nil) {
				return
			}
		}
	}
}

func (c client) Get(_ context.Context, _, id string) (info wakebell.Info, _ wakebell.Content, err error) {
	c.gets <- id
	switch id {
	case "p1":
		return info, wakebell.Content{}, wakebell.ErrNotFound
	case "p2":
		return info, wakebell.Content{}, errors.New("refused")
	}
	return wakebell.Info{ID: id, State: wakebell.StateRunning, Due: time.Unix(1, 0)}, wakebell.Content{}, nil
}

func read(t *testing.T, parts int, after string) (View, int) {
	t.Helper()
	c := client{parts: parts, gets: make(chan string, parts)}
	v, err := Read(t.Context(), c, c, func(_ string, i wakebell.Info) string { return string(i.State) }, "t", "r", after)
	require.NoError(t, err)
	require.NoError(t, v.Err)
	return v, len(c.gets)
}

func TestPartsHaveTheirStates(t *testing.T) {
	t.Parallel()
	v, gets := read(t, 5, "")
	var states []string
	for i, row := range v.Rows {
		states = append(states, row.State)
		require.Equal(t, row.State, v.Drawing.Nodes[i].State)
		require.Equal(t, row.Part, v.Drawing.Nodes[i].Part)
	}
	require.Equal(t, []string{"done", Gone, "unknown", "done", "running"}, states)
	require.Equal(t, 3, gets, "those that have ended are not read")
	require.Equal(t, time.Unix(1, 0), v.Rows[4].Due)
	require.Empty(t, v.Next)
	require.Zero(t, v.Cut())
}

func TestPagesOfPartsAreBounded(t *testing.T) {
	t.Parallel()
	v, _ := read(t, 250, "")
	require.Len(t, v.Rows, MaxParts)
	require.Len(t, v.Drawing.Nodes, MaxParts)
	require.EqualValues(t, 150, v.Cut())
	require.Equal(t, "100", v.Next)
	last, _ := read(t, 250, "200")
	require.Len(t, last.Rows, 50)
	require.Empty(t, last.Next)
}

// Every square is inside the drawing, and no two are at one place.
func TestDrawingHasPlaceForAll(t *testing.T) {
	t.Parallel()
	for _, parts := range []int{1, 2, inRow, inRow + 1, MaxParts} {
		v, _ := read(t, parts, "")
		d, at := v.Drawing, map[[2]int]bool{}
		require.Len(t, d.Nodes, parts)
		for _, n := range append(d.Nodes, d.Join) {
			require.False(t, at[[2]int{n.X, n.Y}])
			at[[2]int{n.X, n.Y}] = true
			require.GreaterOrEqual(t, n.Y, 0)
			require.LessOrEqual(t, n.X+n.Size, d.Width)
			require.LessOrEqual(t, n.Y+n.Size, d.Height)
		}
		for _, l := range d.Lines {
			require.LessOrEqual(t, max(l.X1, l.X2), d.Width)
			require.LessOrEqual(t, max(l.Y1, l.Y2), d.Height)
		}
	}
	none, _ := read(t, 0, "")
	require.Empty(t, none.Drawing.Nodes)
}

func TestAbsentJoinIsNoView(t *testing.T) {
	t.Parallel()
	_, err := Read(t.Context(), client{}, client{}, nil, "t", "another", "")
	require.ErrorIs(t, err, wakebell.ErrNotFound)
}
