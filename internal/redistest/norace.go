//go:build !race

package redistest

// Raced is whether the race detector runs.
const Raced = false
