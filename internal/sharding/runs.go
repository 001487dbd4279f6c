package sharding

import (
	"cmp"
	"slices"

	"github.com/wakebell/wakebell/wakebelltype"
)

// maxRuns is how many handlers a node reports.
const maxRuns = 10

// JoinRuns joins the handlers of two shards that run for long, the longest first. One that is
// in both, as in two reports of a node, occurs once.
func JoinRuns(some, more []wakebelltype.LongRun) []wakebelltype.LongRun {
	all := slices.Concat(some, more)
	slices.SortFunc(all, func(a, b wakebelltype.LongRun) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	all = slices.CompactFunc(all, func(a, b wakebelltype.LongRun) bool { return a.ID == b.ID && a.Since.Equal(b.Since) })
	return slices.Clip(all[:min(len(all), maxRuns)])
}
