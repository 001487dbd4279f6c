//go:build !unix

package process

import "os/exec"

// killAsGroup does nothing: the context kills the command, but not its children.
func killAsGroup(*exec.Cmd) {}

// KeepBrokenPipes does nothing: there is no SIGPIPE.
func KeepBrokenPipes() (stop func()) { return func() {} }
