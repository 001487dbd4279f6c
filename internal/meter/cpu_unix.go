//go:build unix

package meter

import (
	"syscall"
	"time"
)

// ProcessCPU returns the CPU time that this process has used; -1: unknown.
func ProcessCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return -1
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
