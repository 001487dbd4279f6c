package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/text"
)

const (
	// exitReject is EX_DATAERR of sysexits.h: invalid input.
	exitReject = 65
	// outputDelay is how long the output of a command is read after its exit, if a
	// child that it left behind holds it open.
	outputDelay = time.Second
	// reasonBytes bounds the part of a command's stderr that is added to the reason
	// of a failure.
	reasonBytes = 500
)

// ErrCannotRun is the error of a command that this process cannot run: its program does
// not exist or is not executable, or no process can be started.
var ErrCannotRun = errors.New("command cannot be run")

// The exit codes of a shell for a program that is not executable or does not exist.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// plainWord matches the first word of a script if the shell takes it as it is.
var plainWord = regexp.MustCompile(`^\s*([A-Za-z0-9_./+-]+)(?:\s|;|$)`)

// CheckShell returns an error if the first program of a shell command does not exist or
// is not executable. It cannot judge a command whose first word is not plain.
func CheckShell(ctx context.Context, script string) error {
	word := plainWord.FindStringSubmatch(script)
	if word == nil {
		return nil
	}
	if err := exec.CommandContext(ctx, "sh", "-c", `command -v -- "$1"`, "sh", word[1]).Run(); err != nil {
		return fmt.Errorf("%w: %q is neither an executable file nor a command of the shell", ErrCannotRun, word[1])
	}
	return nil
}

// Shell runs a shell command until it exits or ctx ends, which kills its process group. Its
// output goes to stdout and stderr, which are written to at the same time. On Linux the
// shell is killed too when the process ends without doing so, as by SIGKILL. Errors:
// ErrCannotRun, wakebell.Reject.
func Shell(ctx context.Context, script string, stdin io.Reader, stdout, stderr io.Writer, env []string) error {
	said := &tail{limit: reasonBytes}
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Stdin = stdin
	cmd.Stdout = stdout
	cmd.Stderr = io.MultiWriter(stderr, said)
	cmd.Env = append(ownEnvironment(), env...)
	cmd.WaitDelay = outputDelay
	killAsGroup(cmd)
	// The command must end with the thread that started it, so the thread stays.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	return commandVerdict(ctx, cmd.ProcessState, err, said.String())
}

// commandVerdict returns the error of a handler for the exit of its command.
func commandVerdict(ctx context.Context, state *os.ProcessState, err error, said string) error {
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && state.Success():
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("command killed: %w", context.Cause(ctx))
	}
	if said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	if cannotRun(state, err) {
		return fmt.Errorf("%w: %w", ErrCannotRun, err)
	}
	if state != nil && state.ExitCode() == exitReject {
		return wakebell.Reject(err)
	}
	return fmt.Errorf("command: %w", err)
}

// cannotRun reports whether a command failed because of this machine and not because of
// its input.
func cannotRun(state *os.ProcessState, err error) bool {
	if state == nil {
		return !errors.Is(err, syscall.E2BIG) // the environment has the headers of a timer
	}
	return state.ExitCode() == exitNotExecutable || state.ExitCode() == exitNotFound
}

// ownEnvironment returns the node's environment, without the variables that an
// outer node set for its delivery.
func ownEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "WAKEBELL_") && !strings.HasPrefix(variable, "WAKEBELL_REDIS=")
	})
}

// tail stores the last bytes written to it.
type tail struct {
	limit int
	kept  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.limit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	return text.Valid(strings.TrimSpace(string(t.kept)))
}
