package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// reference returns the sections of docs/cli.md by their headings.
func reference(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/cli.md")
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

// leaves returns the commands that can be run, by their names.
func leaves(cmd *cobra.Command, path string) map[string]*cobra.Command {
	all := map[string]*cobra.Command{}
	for _, sub := range cmd.Commands() {
		name := strings.TrimSpace(path + " " + sub.Name())
		if !sub.HasSubCommands() {
			all[name] = sub
			continue
		}
		for n, c := range leaves(sub, name) {
			all[n] = c
		}
	}
	return all
}

var mentioned = regexp.MustCompile("`--([a-z-]+)")

// The reference has exactly the commands and flags of the program.
func TestTheReferenceIsComplete(t *testing.T) {
	t.Parallel()
	sections := reference(t)
	root := newRoot(&cli.App{})
	commands := leaves(root, "")
	global := map[string]bool{"version": true, "help": true}
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		global[f.Name] = true
		require.Contains(t, sections["Global flags"], "`--"+f.Name, "global flags")
	})
	for name, cmd := range commands {
		section, ok := sections[name]
		require.True(t, ok, "docs/cli.md has no section %q", name)
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !global[f.Name] {
				require.Regexp(t, "--"+f.Name+`\b`, section, name)
			}
		})
		for _, flag := range mentioned.FindAllStringSubmatch(section, -1) {
			require.True(t, global[flag[1]] || cmd.Flags().Lookup(flag[1]) != nil, "%s has no --%s", name, flag[1])
		}
	}
	for heading := range sections {
		if commands[heading] == nil {
			require.True(t, slices.Contains([]string{"Global flags", "Where Redis is", "Where a node is", "Listings", "completion"}, heading), "there is no %q", heading)
		}
	}
}
