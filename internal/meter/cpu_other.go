//go:build !unix

package meter

import "time"

// ProcessCPU returns the CPU time that this process has used; -1: unknown.
func ProcessCPU() time.Duration { return -1 }
