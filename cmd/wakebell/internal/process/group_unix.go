//go:build unix

package process

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// killAsGroup puts a command into a process group of its own. A signal from the
// terminal does not reach it, and the end of its context kills its children too.
func killAsGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}

// KeepBrokenPipes makes a write to a closed pipe return an error instead of ending
// the process. Child processes are not affected.
func KeepBrokenPipes() (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	return func() { signal.Stop(c) }
}
