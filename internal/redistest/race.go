//go:build race

package redistest

// Raced is whether the race detector runs. It makes what only computes up to twenty times as
// long, and shows little there: such tests do less under it. make test runs them without it too.
const Raced = true
