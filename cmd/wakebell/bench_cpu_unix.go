//go:build unix

package main

import (
	"syscall"
	"time"
)

// processCPU is the CPU time that this process has used; -1: unknown.
func processCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return -1
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
