//go:build !unix

package main

import "os/exec"

// killAsGroup does what it can here: the context kills the command alone.
func killAsGroup(*exec.Cmd) {}

// keepBrokenPipes has nothing to do here.
func keepBrokenPipes() (stop func()) { return func() {} }
