package config

import (
	"fmt"
	"slices"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/pflag"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// elsewhere are flags that no field sets: topics and queues have sections, and the
// others are about one call of the program.
var elsewhere = []string{"topic", "queue", "config", "remote", "color", "times", "help", "version"}

// IsField reports whether a flag is a field of a file.
func IsField(f *pflag.Flag) bool { return !slices.Contains(elsewhere, f.Name) }

// Set sets flags to the fields of a file, or of one of its sections: "topics" or
// "queues" and a name. It skips fields whose flags are given.
func (f *File) Set(flags *pflag.FlagSet, fields []Field, given map[string][]string, section ...string) (errs []error) {
	path := ""
	for _, name := range section {
		path = join(path, name)
	}
	for _, field := range fields {
		flag := flags.Lookup(field.Name)
		if flag == nil || !IsField(flag) {
			errs = append(errs, &Error{f.Name, field.Line, join(path, field.Name), unknown(flags, field.Name, len(section) == 0)})
			continue
		}
		if _, skipped := given[field.Name]; skipped {
			continue
		}
		if err := cli.SetFlag(flags, flag, field.Values); err != nil {
			errs = append(errs, &Error{f.Name, field.Line, join(path, field.Name), err.Error()})
		}
	}
	return errs
}

// unknown returns the error of a field that does not exist, with the nearest name.
func unknown(flags *pflag.FlagSet, name string, top bool) string {
	var known []string
	if top {
		known = []string{"topics", "queues"}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if IsField(f) {
			known = append(known, f.Name)
		}
	})
	near, least := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := levenshtein.ComputeDistance(name, k); d < least {
			near, least = k, d
		}
	}
	if near == "" {
		return "unknown field"
	}
	return fmt.Sprintf("unknown field; did you mean %q?", near)
}
