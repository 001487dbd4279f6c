// Package clitest checks the reference of the command line, docs/cli.md.
package clitest

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

// Reference returns the sections of docs/cli.md by their headings.
func Reference(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "cli.md"))
	require.NoError(t, err)
	sections := map[string]string{}
	for i, section := range strings.Split("\n"+string(text), "\n## ") {
		if i == 0 {
			continue // the text before the first heading
		}
		heading, body, _ := strings.Cut(section, "\n")
		sections[heading] = body
	}
	return sections
}

// root returns the directory of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		require.NotEqual(t, filepath.Dir(dir), dir, "no go.mod")
	}
}

// Leaves returns the commands that can be run, by their names without that of root.
func Leaves(root *cobra.Command) map[string]*cobra.Command {
	return leaves(root, "")
}

func leaves(cmd *cobra.Command, path string) map[string]*cobra.Command {
	all := map[string]*cobra.Command{}
	for _, sub := range cmd.Commands() {
		name := strings.TrimSpace(path + " " + sub.Name())
		if !sub.HasSubCommands() || sub.LocalNonPersistentFlags().HasFlags() { // one with flags of its own can be run as well
			all[name] = sub
		}
		for n, c := range leaves(sub, name) {
			all[n] = c
		}
	}
	return all
}

// RequireFields requires that the reference and the help of each command name every
// field of its line of JSON.
func RequireFields(t *testing.T, commands []*cobra.Command, lines map[string]any) {
	t.Helper()
	sections := Reference(t)
	root := &cobra.Command{}
	root.AddCommand(commands...)
	help := Leaves(root)
	contents := fieldsOf(reflect.TypeFor[output.Content]())
	for name, line := range lines {
		for _, field := range fieldsOf(reflect.TypeOf(line)) {
			documented := sections[name]
			if slices.Contains(contents, field) {
				documented = sections["node"] // it describes the fields of a body for all commands
			}
			require.Contains(t, documented, "`"+field+"`", name)
			if name != "bench" { // the help of bench abbreviates similar fields
				require.Regexp(t, `\b`+field+`\b`, help[name].Long, "help of %s", name)
			}
		}
	}
}

func fieldsOf(line reflect.Type) (names []string) {
	for field := range line.Fields() {
		if field.Anonymous {
			names = append(names, fieldsOf(field.Type)...)
			continue
		}
		if !field.IsExported() {
			continue // not printed
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
