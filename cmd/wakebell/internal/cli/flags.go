package cli

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wakebell/wakebell/internal/tuning"
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

// GlobalFlags adds the flags that all commands have.
func (a *App) GlobalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&a.RedisURL, "redis", "", "`URL` of Redis, or embedded (default $WAKEBELL_REDIS, else "+defaultRedis+")")
	a.tls.register(root)
	a.remote.register(root)
	flags.StringVar(&a.Prefix, "prefix", "", "`prefix` for the name of every topic")
	flags.StringVar(&a.Keys.Timeline, "timeline-key", "", "base `name` of the keys with due times (default timers_timeline)")
	flags.StringVar(&a.Keys.Payloads, "payloads-key", "", "base `name` of the keys with payloads (default timers_payloads)")
	flags.StringVar(&a.payloadKeys, "payload-keys", "", "`file` with the keys of encrypted bodies (default $WAKEBELL_PAYLOAD_KEYS)")
	CompleteFiles(root, "payload-keys")
	a.color, a.times = OneOf("auto", "always", "never"), OneOf("auto", "relative", "absolute")
	flags.Var(&a.color, "color", "colours; auto: on a terminal, unless NO_COLOR is set")
	flags.Var(&a.times, "times", "instants of tables as they are or relative to now; auto: relative on a terminal")
	CompleteChoice(root, "color", a.color)
	CompleteChoice(root, "times", a.times)
	flags.BoolVar(&a.Keys.HashTag, "hash-tag", false, "put all topics in braces, so that a Cluster stores the keys of each in one slot; on a Cluster those without braces always are")
}

// TuneFlags adds the flags of the settings to a command, and returns their names.
func TuneFlags(flags *pflag.FlagSet, s *wakebelltype.Settings) (names []string) {
	for _, t := range tuning.All {
		if n := t.Number(s); n != nil {
			flags.IntVar(n, t.Flag, *n, t.Usage)
		} else {
			d := t.Duration(s)
			DurationVar(flags, d, t.Flag, *d, t.Usage)
		}
		names = append(names, t.Flag)
	}
	return names
}
