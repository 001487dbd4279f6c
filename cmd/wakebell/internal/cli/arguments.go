package cli

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wakebell/wakebell/internal/text"
)

// flagsOfNames are the flags that take the name which is mistaken for an argument.
var flagsOfNames = []string{"topic", "queue"}

// NoArgs rejects arguments. If the command takes the name of a topic or of a queue as a
// flag, the error names that flag.
func NoArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasSubCommands(): // it may be a mistyped command
		return cobra.NoArgs(cmd, args)
	}
	for _, name := range flagsOfNames {
		if f := cmd.Flags().Lookup(name); f != nil && !f.Changed {
			return Usagef("%s takes no argument; did you mean --%s %s?", pathOf(cmd), name, text.ShellWord(args[0]))
		}
	}
	return Usagef("%s takes no argument, got %q", pathOf(cmd), args[0])
}

// pathOf returns the name of a command without that of the program.
func pathOf(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// FlagError returns the error for flags that cannot be parsed: it names the flag, the
// value and what would be valid.
func FlagError(cmd *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := wrong.GetFlag()
		return Usagef("--%s: %v", f.Name, invalid(f, wrong.GetValue(), wrong.Unwrap()))
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && len(unknown.GetSpecifiedName()) > 1 {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := NearestName(unknown.GetSpecifiedName(), names); near != "" {
			return Usagef("%v; did you mean --%s?", err, near)
		}
	}
	return err
}

// NearestName returns the name that differs from a mistyped one in at most two letters
// and least; empty if there is none.
func NearestName(typed string, names []string) (near string) {
	least := min(2, len(typed)-1) + 1 // not every character may differ
	for _, name := range names {
		if d := levenshtein.ComputeDistance(typed, name); d < least {
			near, least = name, d
		}
	}
	return near
}

// wants says what a flag of a number takes.
func wants(f *pflag.Flag, value string) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "int", "int64", "int32":
		return "a whole number"
	case "uint", "uint64", "uint32":
		return "a whole number from 0"
	case "float64", "float32":
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return "a number"
		}
	}
	return ""
}

// CheckJSON returns an error that says where the value of --json is not JSON.
func CheckJSON(text string) error {
	if !utf8.ValidString(text) {
		return Usagef("--json: not valid UTF-8")
	}
	var value any
	err := json.Unmarshal([]byte(text), &value)
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		return Usagef("--json: not valid JSON at byte %d: %v", wrong.Offset, err)
	}
	if !json.Valid([]byte(text)) {
		return Usagef("--json: not valid JSON: %v", err)
	}
	return nil
}
