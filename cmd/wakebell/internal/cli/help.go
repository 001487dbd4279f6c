package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the width of the help: the default of a terminal.
const helpWidth = 80

// flagsTopic is the argument with which help shows the global flags.
const flagsTopic = "flags"

// SetHelp makes the commands below root print their help in at most helpWidth columns and
// without the global flags, which "help flags" shows.
func SetHelp(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		cmd.InitDefaultHelpFlag()
		if cmd == root {
			cmd.InitDefaultVersionFlag()
		}
		about := cmd.Long
		if about == "" {
			about = cmd.Short
		}
		writeHelp(cmd.OutOrStdout(), wrapText(about)+"\n\n"+usage(cmd))
	})
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), usage(cmd))
		return err
	})
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command, or the global flags",
		Long:  `Shows the help of a command. With "flags" it shows the flags that all commands have.`,
		Example: `  wakebell help node
  wakebell help flags`,
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil }, // it reads no variables
		RunE:              func(cmd *cobra.Command, args []string) error { return help(cmd.Root(), cmd.OutOrStdout(), args) },
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return helpTopics(cmd.Root(), args), cobra.ShellCompDirectiveNoFileComp
		},
	})
}

// writeHelp writes help. An error of that has no place to be reported.
func writeHelp(w io.Writer, text string) { _, _ = io.WriteString(w, text) }

func help(root *cobra.Command, out io.Writer, args []string) error {
	if slices.Equal(args, []string{flagsTopic}) {
		writeHelp(out, "Flags that all commands have; each has a variable, as --prefix has\nWAKEBELL_PREFIX:\n\n"+
			strings.TrimRight(root.PersistentFlags().FlagUsagesWrapped(helpWidth), "\n")+"\n")
		return nil
	}
	cmd, rest, err := root.Find(args)
	if err != nil || len(rest) > 0 {
		return Usagef("no help for %q; wakebell --help lists the commands", strings.Join(args, " "))
	}
	return cmd.Help()
}

// helpTopics completes the arguments of help.
func helpTopics(root *cobra.Command, args []string) (names []string) {
	cmd, rest, err := root.Find(args)
	if err != nil || len(rest) > 0 {
		return nil
	}
	if cmd == root {
		names = append(names, flagsTopic)
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// usage returns what follows the description of a command in its help.
func usage(cmd *cobra.Command) string {
	var b strings.Builder
	section := func(title, text string) {
		if text = strings.TrimRight(text, "\n "); text != "" {
			fmt.Fprintf(&b, "%s:\n%s\n\n", title, text)
		}
	}
	lines := ""
	if cmd.Runnable() && (!cmd.HasAvailableSubCommands() || takesFlags(cmd)) {
		lines = wrapLine("  "+cmd.UseLine(), "      ")
	}
	if cmd.HasAvailableSubCommands() {
		lines += fmt.Sprintf("  %s COMMAND\n", cmd.CommandPath())
	}
	section("Usage", lines)
	section("Examples", wrapExamples(cmd.Example))
	for _, group := range cmd.Groups() {
		section(strings.TrimSuffix(group.Title, ":"), commandList(cmd, group.ID))
	}
	rest := "Commands"
	if len(cmd.Groups()) > 0 {
		rest = "More"
	}
	section(rest, commandList(cmd, ""))
	section("Flags", cmd.LocalNonPersistentFlags().FlagUsagesWrapped(helpWidth))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "%s COMMAND --help shows the help of a command.\n", cmd.CommandPath())
	}
	b.WriteString("The flags --redis, --remote, --prefix and others that all commands have are in\n\"wakebell help flags\".\n")
	return b.String()
}

// takesFlags reports whether a command has flags of its own.
func takesFlags(cmd *cobra.Command) (takes bool) {
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { takes = takes || HasVariable(f) })
	return takes
}

// commandList lists the commands of a group.
func commandList(cmd *cobra.Command, group string) string {
	var b strings.Builder
	for _, sub := range cmd.Commands() {
		if sub.GroupID == group && (sub.IsAvailableCommand() || sub.Name() == "help") {
			b.WriteString(wrapLine(fmt.Sprintf("  %-*s %s", sub.NamePadding(), sub.Name(), sub.Short), strings.Repeat(" ", sub.NamePadding()+3)))
		}
	}
	return b.String()
}

// wrapExamples breaks commands that are longer than the help is wide as a shell takes
// them: with a backslash, outside of quotes.
func wrapExamples(examples string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(examples, "\n") {
		for ansi.StringWidth(line) > helpWidth {
			at := helpWidth - 1
			for at > 0 && (line[at] != ' ' || strings.Count(line[:at], "'")%2 == 1) {
				at--
			}
			if strings.TrimSpace(line[:at]) == "" {
				break // one long word
			}
			b.WriteString(line[:at] + " \\\n")
			line = "      " + line[at+1:]
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// wrapText wraps lines that are longer than the help is wide. A paragraph is filled
// again, but for lines that are indented: these are lists.
func wrapText(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		lines := strings.Split(strings.Trim(paragraph, "\n"), "\n")
		longest := ansi.StringWidth(slices.MaxFunc(lines, func(a, b string) int { return ansi.StringWidth(a) - ansi.StringWidth(b) }))
		indented := slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, " ") })
		if longest > helpWidth && !indented {
			lines = []string{strings.Join(lines, " ")}
		}
		for _, line := range lines {
			indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
			b.WriteString(wrapLine(line, indent))
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// wrapLine breaks a line between words. The parts after the first begin with indent.
func wrapLine(line, indent string) string {
	var b strings.Builder
	for ansi.StringWidth(line) > helpWidth {
		at := strings.LastIndexByte(line[:helpWidth+1], ' ')
		if at <= len(indent) {
			break // one long word
		}
		b.WriteString(strings.TrimRight(line[:at], " ") + "\n")
		line = indent + line[at+1:]
	}
	b.WriteString(line + "\n")
	return b.String()
}
