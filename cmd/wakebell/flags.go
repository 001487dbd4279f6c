package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

// topicFlag gives a command the topic that it is about, which it has to be
// told.
func (a *app) topicFlag(cmd *cobra.Command, topic *string, usage string) {
	cmd.Flags().StringVarP(topic, "topic", "t", "", usage)
	_ = cmd.MarkFlagRequired("topic") // the flag is there, so this cannot fail
	a.completeTopics(cmd)
}

// topicsFlag is topicFlag for any number of topics; none is fine.
func (a *app) topicsFlag(cmd *cobra.Command, topics *[]string, usage string) {
	cmd.Flags().StringArrayVarP(topics, "topic", "t", nil, usage+"; may be repeated")
	a.completeTopics(cmd)
}

func inFlag(cmd *cobra.Command, in *time.Duration) {
	cmd.Flags().DurationVar(in, "in", 0, "due after this `duration`")
}

func yesFlag(cmd *cobra.Command, yes *bool, usage string) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, usage)
}

// dueFlags say when a timer is due, in one of two ways.
type dueFlags struct {
	in time.Duration
	at string
}

func (f *dueFlags) register(cmd *cobra.Command) {
	inFlag(cmd, &f.in)
	cmd.Flags().StringVar(&f.at, "at", "", "due at this `instant`, in RFC 3339")
	cmd.MarkFlagsMutuallyExclusive("in", "at")
}

// when returns what makes a timer due at the instant of the flags, or later
// than that.
func (f *dueFlags) when() (func(later time.Duration) wakebell.ScheduleOption, error) {
	if f.at == "" {
		return func(later time.Duration) wakebell.ScheduleOption { return wakebell.In(f.in + later) }, nil
	}
	at, err := time.Parse(time.RFC3339Nano, f.at)
	if err != nil {
		return nil, usagef("--at: %q is not an instant such as 2031-01-02T15:04:05Z", f.at)
	}
	return func(later time.Duration) wakebell.ScheduleOption { return wakebell.At(at.Add(later)) }, nil
}

func limitFlag(cmd *cobra.Command, limit *int) {
	cmd.Flags().IntVar(limit, "limit", 100, "how many at most; 0: all")
}

func instantFlag(flag, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, usagef("--%s: %q is not an instant such as 2031-01-02T15:04:05Z", flag, text)
	}
	return at, nil
}
