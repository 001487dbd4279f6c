package process

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// exitFailed is the exit code when the child cannot be started or waited for; that of
// cli.ExitError.
const exitFailed = 1

// RunAsInit runs the program again as a child, if this process is the first of a
// container. It returns its exit code, and whether it did. The first process has to wait
// for all processes whose parents have ended, such as background processes of --exec,
// or they stay as zombies. A program that also starts processes itself cannot: it would
// take their exit codes from those who wait for them.
func RunAsInit() (code int, done bool) {
	if os.Getpid() != 1 {
		return 0, false
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals)
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "wakebell: start the program as a child of the first process: %v\n", err)
		return exitFailed, true
	}
	go func() {
		for s := range signals {
			if s != syscall.SIGCHLD && s != syscall.SIGURG {
				_ = cmd.Process.Signal(s) // it may have ended
			}
		}
	}()
	return reap(cmd.Process.Pid), true
}

// reap waits for processes until the child has ended, and returns its exit code.
func reap(child int) int {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return exitFailed // there is no child left
		case pid == child && status.Signaled():
			return 128 + int(status.Signal())
		case pid == child:
			return status.ExitStatus()
		}
	}
}
