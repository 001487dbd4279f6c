// Package progress lets a call that reads or changes much report how far it is to the
// program that made it.
package progress

import "context"

// Report receives how many of total things are done.
type Report func(done, total int64)

type key struct{}

// With returns a context whose calls report to r, one at a time.
func With(ctx context.Context, r Report) context.Context { return context.WithValue(ctx, key{}, r) }

// Of returns the Report of a context; nil: nothing wants to know.
func Of(ctx context.Context) Report {
	r, _ := ctx.Value(key{}).(Report)
	return r
}
