package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	// exclusiveFlags is cobra's annotation of flags that exclude each other. Its
	// values are groups: names with spaces between them.
	exclusiveFlags = "cobra_annotation_mutually_exclusive"
	// listFlags annotates flags whose value is a list with commas.
	listFlags = "wakebell_list"
)

// ownVariables are the flags whose variables App reads itself, because they exclude
// each other.
var ownVariables = []string{"redis", "remote", "token-file"}

// Variable returns the environment variable of a flag: WAKEBELL_PREFIX for the global
// flag --prefix, WAKEBELL_NODE_MAX_CONCURRENT for --max-concurrent of node. The name
// has the command, because handlers get variables such as WAKEBELL_TOPIC, and a
// command that a handler runs must not take them for its flags.
func Variable(cmd *cobra.Command, f *pflag.Flag) string {
	words := []string{f.Name}
	if cmd.Root().PersistentFlags().Lookup(f.Name) != f {
		words = append(strings.Fields(cmd.CommandPath())[1:], f.Name)
	}
	return "WAKEBELL_" + strings.ToUpper(strings.ReplaceAll(strings.Join(words, "_"), "-", "_"))
}

// ReadEnvironment sets the flags of a command that are not given and whose variable is
// not empty. A variable yields to a given flag that excludes its own.
func ReadEnvironment(cmd *cobra.Command, _ []string) error {
	warnOfUnknown(cmd)
	given := map[string]bool{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { given[f.Name] = f.Changed })
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := Variable(cmd, f)
		value := os.Getenv(name)
		if value == "" || !HasVariable(f) || slices.Contains(ownVariables, f.Name) || given[f.Name] || excluded(f, given) {
			return
		}
		values := []string{value}
		if _, repeated := f.Value.(pflag.SliceValue); repeated {
			values = split(value)
		}
		if err := SetFlag(cmd.Flags(), f, values); err != nil {
			errs = append(errs, Usagef("%s: %v", name, err))
		}
	})
	return errors.Join(errs...)
}

// HasVariable reports whether a flag can be set by a variable: all but --help and
// --version.
func HasVariable(f *pflag.Flag) bool { return f.Name != "help" && f.Name != "version" }

// excluded reports whether a given flag excludes f.
func excluded(f *pflag.Flag, given map[string]bool) bool {
	for _, group := range f.Annotations[exclusiveFlags] {
		for name := range strings.FieldsSeq(group) {
			if name != f.Name && given[name] {
				return true
			}
		}
	}
	return false
}

// split returns the values of a flag that can be repeated: one on each line, or
// separated by commas.
func split(value string) []string {
	separator := ","
	if strings.Contains(value, "\n") {
		separator = "\n"
	}
	values := strings.Split(value, separator)
	return slices.DeleteFunc(values, func(v string) bool { return v == "" })
}

// Given returns the values of the flags that are given or whose variable is set. Flags
// whose variable App reads itself have no values.
func Given(cmd *cobra.Command) map[string][]string {
	given := map[string][]string{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Changed:
			given[f.Name] = FlagValues(f)
		case slices.Contains(ownVariables, f.Name) && os.Getenv(Variable(cmd, f)) != "":
			given[f.Name] = nil
		}
	})
	return given
}

// FlagValues returns the values of a flag: several if it can be repeated.
func FlagValues(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}

// MarkList marks flags whose value is a list with commas. In a configuration file it
// may be a list.
func MarkList(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		_ = cmd.Flags().SetAnnotation(flag, listFlags, nil) // the flags are there, so this cannot fail
	}
}

// SetFlag sets a flag to values: several only if it can be repeated, or if its value
// is a list. The error says what would be valid.
func SetFlag(flags *pflag.FlagSet, f *pflag.Flag, values []string) error {
	if _, joined := f.Annotations[listFlags]; joined {
		values = []string{strings.Join(values, ",")}
	}
	if !IsList(f) && len(values) != 1 {
		return errors.New("a list, want one value")
	}
	for _, value := range values {
		if err := flags.Set(f.Name, value); err != nil {
			return invalid(f, value, err)
		}
	}
	return nil
}

// IsList reports whether a flag takes several values.
func IsList(f *pflag.Flag) bool {
	_, joined := f.Annotations[listFlags]
	_, repeated := f.Value.(pflag.SliceValue)
	return joined || repeated
}

// invalid returns the error of a value without pflag's words about the command line.
func invalid(f *pflag.Flag, value string, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		err = wrong.Unwrap()
	}
	switch text := err.Error(); {
	case strings.HasPrefix(text, "want "):
		return fmt.Errorf("%q, %w", value, err)
	case wants(f, value) != "":
		return fmt.Errorf("%q, want %s", value, wants(f, value))
	case strings.Contains(text, strconv.Quote(value)):
		return err
	}
	return fmt.Errorf("%q: %w", value, err)
}
