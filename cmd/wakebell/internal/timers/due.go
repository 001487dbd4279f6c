package timers

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

func inFlag(cmd *cobra.Command, in *time.Duration) {
	cli.DurationVar(cmd.Flags(), in, "in", 0, "due after this `duration`")
}

// dueFlags are --in and --at, of which one says when a timer is due.
type dueFlags struct {
	in time.Duration
	at string
}

func (f *dueFlags) register(cmd *cobra.Command) {
	inFlag(cmd, &f.in)
	cmd.Flags().StringVar(&f.at, "at", "", "due at this `instant`, in RFC 3339")
	cmd.MarkFlagsMutuallyExclusive("in", "at")
}

// due describes the flags.
func (f *dueFlags) due() string {
	if f.at != "" {
		return "to: " + f.at
	}
	return "to: in " + f.in.String()
}

// when returns a function that makes a timer due at the instant of the flags plus
// a delay.
func (f *dueFlags) when() (func(later time.Duration) wakebell.ScheduleOption, error) {
	if f.at == "" {
		return func(later time.Duration) wakebell.ScheduleOption { return wakebell.In(f.in + later) }, nil
	}
	at, err := cli.InstantFlag("at", f.at)
	if err != nil {
		return nil, err
	}
	return func(later time.Duration) wakebell.ScheduleOption { return wakebell.At(at.Add(later)) }, nil
}
