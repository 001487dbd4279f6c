//go:build race

package simulate

// plans: under the race detector a plan takes ten times as long and shows hardly more,
// because one goroutine decides everything. `.ci/run` runs more of them without it.
const plans = 1
