//go:build !unix

package main

import "os/exec"

// killAsGroup does nothing: the context kills the command, but not its children.
func killAsGroup(*exec.Cmd) {}

// keepBrokenPipes does nothing: there is no SIGPIPE.
func keepBrokenPipes() (stop func()) { return func() {} }
