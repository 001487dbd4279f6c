package main

import (
	"regexp"
	"slices"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/clitest"
)

var mentioned = regexp.MustCompile("`--([a-z-]+)")

// The reference has exactly the commands and flags of the program.
func TestReferenceIsComplete(t *testing.T) {
	t.Parallel()
	sections := clitest.Reference(t)
	root := newRoot(&cli.App{})
	commands := clitest.Leaves(root)
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
			require.True(t, slices.Contains([]string{"Global flags", "Where Redis is", "Where a node is", "Listings", "Variables", "Configuration file", "completion"}, heading), "there is no %q", heading)
		}
	}
}
