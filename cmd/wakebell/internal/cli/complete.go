package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// completeLimit is the longest time that a shell waits for topics.
	completeLimit = time.Second
	// completeMost is the largest number of topics offered to a shell.
	completeMost = 1000
)

// completeTopics completes --topic from the registry. Ids are not completed: there
// may be millions.
func (a *App) completeTopics(cmd *cobra.Command) {
	// It fails only without such a flag, or on a second registration.
	_ = cmd.RegisterFlagCompletionFunc("topic", func(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
		return a.topicsFrom(cmd.Context(), start), cobra.ShellCompDirectiveNoFileComp
	})
}

// CompleteChoice completes a flag with its allowed values.
func CompleteChoice(cmd *cobra.Command, flag string, c Choice) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(c.allowed, cobra.ShellCompDirectiveNoFileComp)) // as above
}

// CompleteFiles completes flags with file names.
func CompleteFiles(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)) // as above
	}
}

// topicsFrom returns the topics that begin with start, as --topic takes them.
// Errors and timeouts are silent: a shell has no place for them.
func (a *App) topicsFrom(ctx context.Context, start string) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, completeLimit)
	defer cancel()
	a.Stderr = io.Discard // also what a connection waits for
	prefix := a.Prefix
	if a.RemoteAddress() == "" {
		a.Prefix = "" // Topics returns full names
	}
	done := make(chan []string, 1)
	go func() { // a connection may take longer to fail than a shell should wait
		var found []string
		_ = a.Ask(ctx, func(c Client) error {
			for name, err := range c.Topics(ctx, false, wakebelltype.Page{}) {
				if err != nil || len(found) == completeMost {
					return err
				}
				name, ok := strings.CutPrefix(name, prefix)
				if ok && strings.HasPrefix(name, start) && output.Escape(name) == name {
					found = append(found, name)
				}
			}
			return nil
		})
		done <- found
	}()
	select {
	case names = <-done:
		slices.Sort(names)
	case <-ctx.Done():
	}
	return names
}
