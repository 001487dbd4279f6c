//go:build !unix

package main

import "time"

// processCPU is the CPU time that this process has used; -1: unknown.
func processCPU() time.Duration { return -1 }
