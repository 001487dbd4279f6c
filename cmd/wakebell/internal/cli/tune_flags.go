package cli

import (
	"github.com/spf13/pflag"

	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TuneFlags adds the flags of the settings to a command, and returns their names.
func TuneFlags(flags *pflag.FlagSet, s *wakebelltype.Settings) (names []string) {
	for _, t := range tuning.All {
		if n := t.Number(s); n != nil {
			flags.IntVar(n, t.Flag, *n, t.Usage)
		} else {
			d := t.Duration(s)
			DurationVar(flags, d, t.Flag, *d, t.Usage)
		}
		names = append(names, t.Flag)
	}
	return names
}
