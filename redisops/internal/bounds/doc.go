// Package bounds has no code but its tests. They run every script of every store at its
// largest legal settings: `make script-bounds` measures for how long each blocks Redis, and
// writes the table of docs/scale.md; `go test` runs the same on less data, and checks that
// no script is left out and that no call makes more commands than are a bounded work.
package bounds
