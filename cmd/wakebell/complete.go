package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	// completeLimit is how long a shell waits for topics, at most.
	completeLimit = time.Second
	// completeMost is how many topics a shell is offered.
	completeMost = 1000
)

// completeTopics has a shell complete --topic from the registry. Ids are not
// completed: there may be millions.
func (a *app) completeTopics(cmd *cobra.Command) {
	// It fails only where there is no such flag, or it is completed already.
	_ = cmd.RegisterFlagCompletionFunc("topic", func(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
		return a.topicsFrom(cmd.Context(), start), cobra.ShellCompDirectiveNoFileComp
	})
}

func completeChoice(cmd *cobra.Command, flag string, c choice) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(c.allowed, cobra.ShellCompDirectiveNoFileComp)) // as above
}

// completeFiles has a shell complete flags with the names of files.
func completeFiles(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)) // as above
	}
}

// topicsFrom are the topics that begin with start, as --topic takes them: what
// is not found in time, or at all, is not offered, and nobody is told why.
func (a *app) topicsFrom(ctx context.Context, start string) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, completeLimit)
	defer cancel()
	prefix := a.prefix
	if a.remoteAddress() == "" {
		a.prefix = "" // the names of topics are full ones
	}
	done := make(chan []string, 1)
	go func() { // a connection may take longer to fail than a shell should wait
		var found []string
		_ = a.ask(ctx, func(c asked) error {
			for name, err := range c.Topics(ctx, false) {
				if err != nil || len(found) == completeMost {
					return err
				}
				name, ok := strings.CutPrefix(name, prefix)
				if ok && strings.HasPrefix(name, start) && escape(name) == name {
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
