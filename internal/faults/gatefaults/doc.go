// Package gatefaults records histories of a gate: processes take turns at it while
// faults are injected, and print what they observe. The checks of a [History] tell
// whether the gate kept its promises. Docs/gates.md describes the classes of histories.
package gatefaults
