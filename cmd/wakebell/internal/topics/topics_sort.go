package topics

import (
	"context"
	"slices"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/ranked"
	"github.com/wakebell/wakebell/wakebelltype"
)

// selection is what a listing of topics shows in which order.
type selection struct {
	order    string // of package ranked
	problems bool   // only topics with problems
}

// all reports whether all topics have to be read before the first is shown.
func (s selection) all() bool { return s.problems || s.order != "name" }

// read reads topics, and returns those that are shown.
func (s selection) read(ctx context.Context, c wakebell.Operator, names []string) (rows []wakebelltype.Overview, err error) {
	for part := range slices.Chunk(names, topicsPage) {
		some, err := c.Overview(ctx, part...)
		if err != nil {
			return nil, err
		}
		for _, o := range some {
			if !s.problems || ranked.Problem(o) != "" {
				rows = append(rows, o)
			}
		}
	}
	ranked.Sort(rows, s.order)
	return rows, nil
}
