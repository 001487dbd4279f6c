package cli

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/wakebelltype"
)

// TopicFlag adds the required flag --topic.
func (a *App) TopicFlag(cmd *cobra.Command, topic *string, usage string) {
	cmd.Flags().StringVarP(topic, "topic", "t", "", usage)
	_ = cmd.MarkFlagRequired("topic") // the flag is there, so this cannot fail
	a.completeTopics(cmd)
}

// TopicsFlag adds the optional flag --topic, which can be repeated.
func (a *App) TopicsFlag(cmd *cobra.Command, topics *[]string, usage string) {
	cmd.Flags().StringArrayVarP(topics, "topic", "t", nil, usage+"; can be repeated")
	a.completeTopics(cmd)
}

// YesFlag adds --yes, which skips the question of Confirm.
func YesFlag(cmd *cobra.Command, yes *bool, usage string) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, usage)
}

// PageFlags are --limit and --after, which select a part of a listing.
type PageFlags struct {
	Limit int // 0: none
	after string
}

// Register adds the flags; limit is the default of --limit.
func (f *PageFlags) Register(cmd *cobra.Command, limit int) {
	f.Limit = limit
	cmd.Flags().Var((*limitValue)(&f.Limit), "limit", "maximum `number` to list; 0: all")
	cmd.Flags().StringVar(&f.after, "after", "", "continue after this `cursor`, which the listing before has printed")
}

// Page asks for one item more than are shown: it tells whether there is one.
func (f *PageFlags) Page() wakebelltype.Page {
	page := wakebelltype.Page{After: f.after}
	if f.Limit > 0 {
		page.Limit = f.Limit + 1
	}
	return page
}

// ListLimit is the default of --limit where a listing can be long.
const ListLimit = 100

// InstantFlag parses the value of a flag for an instant.
func InstantFlag(flag, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, Usagef("--%s: %q is not an instant such as 2031-01-02T15:04:05Z", flag, text)
	}
	return at, nil
}

// limitValue is the value of --limit.
type limitValue int

// Set takes a number that is not negative.
func (v *limitValue) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return errors.New("want a number from 0")
	}
	*v = limitValue(n)
	return nil
}

func (v *limitValue) String() string { return strconv.Itoa(int(*v)) }

// Type is shown in the help.
func (v *limitValue) Type() string { return "int" }
