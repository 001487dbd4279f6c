package main

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
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
	root := (&app{}).root()
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

// The reference and the help of a command name every field of its JSON.
func TestTheReferenceNamesTheFields(t *testing.T) {
	t.Parallel()
	sections := reference(t)
	commands := leaves((&app{}).root(), "")
	for name, line := range map[string]any{
		"node": delivery{}, "schedule": scheduledLine{}, "ls": timerLine{}, "cancel": presenceLine{}, "reschedule": scheduledLine{},
		"run-now": presenceLine{}, "topics": topicLine{}, "stats": statsLine{}, "doctor": findingLine{}, "pause": pauseLine{},
		"gate hold": gateEvent{}, "gate ls": gateListLine{}, "gate repair": gateRepairLine{},
		"dead ls": deadLine{}, "dead redrive": redrivenLine{}, "bench": benchResult{}, "beat": fireLine{}, "schedules ls": recurringLine{},
		"schedules backfill": backfilledLine{}, "rights check": verdict{},
		"queue publish": publishedLine{}, "queue ls": queueLine{}, "queue stats": queueStatsLine{}, "queue dead ls": queueDeadLine{},
	} {
		for _, field := range fieldsOf(reflect.TypeOf(line)) {
			documented := sections[name]
			if slices.Contains(fieldsOf(reflect.TypeFor[content]()), field) {
				documented = sections["node"] // it describes the fields of a body for all commands
			}
			require.Contains(t, documented, "`"+field+"`", name)
			if name != "bench" { // the help of bench abbreviates similar fields
				require.Regexp(t, `\b`+field+`\b`, commands[name].Long, "help of %s", name)
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
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
