package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

// DurationVar adds a flag for a duration, which takes the units d and w as well.
func DurationVar(flags *pflag.FlagSet, d *time.Duration, name string, preset time.Duration, usage string) {
	*d = preset
	flags.Var((*durationValue)(d), name, usage)
}

// durationValue is the value of a flag for a duration.
type durationValue time.Duration

// Set takes a duration such as 90s, 36h, 2d or 1w.
func (v *durationValue) Set(text string) error {
	d, err := output.ParseDuration(text)
	*v = durationValue(d)
	return err
}

// String is shown in the help as the default; 0 is not shown.
func (v *durationValue) String() string {
	if *v == 0 {
		return "0"
	}
	return time.Duration(*v).String()
}

// Type is shown in the help.
func (v *durationValue) Type() string { return "duration" }
