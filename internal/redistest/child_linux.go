package redistest

import "syscall"

// ChildAttr ties a process to the test that starts it: the kernel kills it when
// the tests end without cleaning up (a panic, a timeout, a kill). The signal is
// bound to the thread that started it; the Go runtime ends no thread but those
// that a goroutine has locked for good.
func ChildAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
