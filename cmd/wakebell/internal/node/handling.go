package node

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/config"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/process"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
	"github.com/wakebell/wakebell/webhook"
)

// handling are the flags of node about one topic or queue. The sections of a
// configuration file have them as well.
type handling struct {
	exec            string
	post            postFlags
	tuned           wakebelltype.Settings
	discardRejected bool
	skipFailed      bool
	keyRun          int
	keyWeights      []string
	shards          int
	expiry          wakebelltype.Expiry
	history         wakebelltype.HistoryPolicy
	queueFlags
	guardFlags
	flags *pflag.FlagSet
}

func (h *handling) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&h.exec, "exec", "", "shell `command` to run for each delivery")
	h.post.register(cmd)
	h.tuned = tuning.Defaults()
	cli.TuneFlags(flags, &h.tuned)
	flags.BoolVar(&h.discardRejected, "discard-rejected", false, "remove rejected timers instead of making them dead letters")
	h.topicFlags(flags)
	flags.TextVar(&h.history, "history", wakebelltype.HistoryFailures, "attempts to record for the commands history and queue history: `policy` off, failures or all")
	h.queueFlags.register(cmd)
	h.guardFlags.register(flags)
	h.flags = flags
}

// topicFlags registers the flags of topics that cannot change while they are handled.
func (h *handling) topicFlags(flags *pflag.FlagSet) {
	cli.DurationVar(flags, &h.expiry.After, "expire-after", 0, "remove timers that could not begin within this `time` after their instants, 1ms to 365 days; 0: never")
	flags.BoolVar(&h.expiry.DeadLetter, "expired-dead", false, "make expired timers dead letters")
	flags.StringVar(&h.expiry.Topic, "expired-to", "", "`topic` to which expired timers are sent")
	flags.IntVar(&h.shards, "shards", 0, "`number` of shards of a topic without timers, 1 to 256; 0: as it is stored")
	flags.StringSliceVar(&h.keyWeights, "key-weights", nil, "with --fair-keys: how many times as many timers start in a turn, for keys that are, or begin with, a class and a colon: `class=weight`, 1 to 100")
	flags.IntVar(&h.keyRun, "key-run", 0, "with --per-key 1: lease up to so many due timers of a key at once, and run them one after the other: `number`, 0 to 100; 0: one")
	flags.BoolVar(&h.skipFailed, "skip-failed", false, "with --per-key: run the next timer of a key while one waits for its retry")
}

// tuning returns the options of a topic or of a subscriber's queue that can change
// while it is handled.
func (h *handling) tuning() []wakebell.TuningOption {
	return []wakebell.TuningOption{
		wakebell.MaxConcurrent(h.tuned.MaxConcurrent),
		wakebell.LeaseTTL(h.tuned.LeaseTTL),
		wakebell.MaxLeaseAge(h.tuned.MaxLeaseAge),
		wakebell.PollingInterval(h.tuned.PollingInterval),
		wakebell.MaxPollingInterval(h.tuned.MaxPollingInterval),
		wakebell.MaxAttempts(h.tuned.MaxAttempts),
		wakebell.RetryBackoff(h.tuned.RetryInitial, h.tuned.RetryLimit),
		wakebell.RateLimit(h.tuned.RateLimit, h.tuned.RatePer, h.tuned.RateBurst),
		wakebell.MaxInFlight(h.tuned.MaxInFlight),
	}
}

// tunedTopic returns the options of a topic that can change while it is handled.
func (h *handling) tunedTopic() []wakebell.TopicTuningOption {
	return append(topicTuning(h.tuning()),
		wakebell.PerKey(h.tuned.PerKey),
		wakebell.RateLimitByKey(h.tuned.KeyRateLimit, h.tuned.KeyRatePer, h.tuned.KeyRateBurst),
		wakebell.FairKeys(h.tuned.FairKeys),
	)
}

// topicTuning converts options to those that RetuneLocal takes.
func topicTuning(options []wakebell.TuningOption) (all []wakebell.TopicTuningOption) {
	for _, option := range options {
		all = append(all, option)
	}
	return all
}

func (h *handling) topicOptions() []wakebell.HandlerOption {
	options := []wakebell.HandlerOption{wakebell.History(h.history)}
	for _, option := range h.tunedTopic() {
		options = append(options, option)
	}
	for _, option := range h.guardOptions() {
		options = append(options, option)
	}
	if h.discardRejected {
		options = append(options, wakebell.DiscardRejected())
	}
	if h.skipFailed {
		options = append(options, wakebell.SkipFailed())
	}
	if h.keyRun != 0 {
		options = append(options, wakebell.KeyRun(h.keyRun))
	}
	if len(h.keyWeights) > 0 {
		options = append(options, wakebell.KeyWeights(weightsOf(h.keyWeights)))
	}
	if h.expiry != (wakebelltype.Expiry{}) {
		options = append(options, wakebell.Expiry(h.expiry))
	}
	if h.shards != 0 {
		options = append(options, wakebell.Shards(h.shards))
	}
	return options
}

// weightsOf returns the weights of --key-weights. KeyWeights refuses 0, which stands for one that
// is no number.
func weightsOf(list []string) map[string]int {
	weights := map[string]int{}
	for _, text := range list {
		class, weight, _ := strings.Cut(text, "=")
		weights[class], _ = strconv.Atoi(weight)
	}
	return weights
}

// subscriberOptions returns the options of the queues of subscribers: the settings of
// topics.
func (h *handling) subscriberOptions() []wakebell.QueueHandlerOption {
	options := []wakebell.QueueHandlerOption{wakebell.History(h.history)}
	for _, option := range h.tuning() {
		options = append(options, option)
	}
	for _, option := range h.guardOptions() {
		options = append(options, option)
	}
	if h.discardRejected {
		options = append(options, wakebell.DiscardRejected())
	}
	return options
}

// handled is a topic or a queue that the node handles.
type handled struct {
	name  string
	queue bool
	handling
	section *config.Section         // nil: none
	script  *atomic.Pointer[string] // that runs; empty: none
	hook    *webhook.Webhook        // nil: none
}

// newHandled returns a topic or a queue with the defaults of its flags. A queue has no
// flags of topics, and the other way round.
func newHandled(name string, queue bool) *handled {
	h := &handled{name: name, queue: queue, script: &atomic.Pointer[string]{}}
	cmd := &cobra.Command{}
	h.register(cmd)
	var others cobra.Command
	if queue {
		cli.TuneFlags(others.Flags(), &wakebelltype.Settings{})
		(&handling{}).topicFlags(others.Flags())
	} else {
		(&queueFlags{}).register(&others)
	}
	h.flags = pflag.NewFlagSet(name, pflag.ContinueOnError)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		shared := slices.ContainsFunc(queueTuning, func(t *tuning.Setting) bool { return t.Flag == f.Name })
		if others.Flags().Lookup(f.Name) == nil || queue && shared {
			h.flags.AddFlag(f)
		}
	})
	return h
}

// path returns the names of the section of a topic or queue.
func (h *handled) path() []string {
	if h.queue {
		return []string{"queues", h.name}
	}
	return []string{"topics", h.name}
}

// own returns the flags that the section has fields of.
func (h *handled) own() *pflag.FlagSet {
	own := pflag.NewFlagSet(h.name, pflag.ContinueOnError)
	if h.section != nil {
		for _, field := range h.section.Fields {
			own.AddFlag(h.flags.Lookup(field.Name))
		}
	}
	return own
}

// rawHandler handles bodies of every kind.
type rawHandler = func(context.Context, wakebell.Timer[[]byte]) error

// handler returns the handler, which calls report and then the webhook or the script.
func (h *handled) handler(a *cli.App, report rawHandler, commands *execGuard) wakebell.Handler {
	h.script.Store(&h.exec)
	script, hook := h.script, h.hook
	handle := func(ctx context.Context, t wakebell.Timer[[]byte]) error {
		if err := report(ctx, t); err != nil {
			return err
		}
		if hook != nil {
			return hook.Handle(ctx, t)
		}
		if script := *script.Load(); script != "" {
			return shellHandler(a, script, commands)(ctx, t)
		}
		return nil
	}
	if h.queue {
		return h.queueHandler(handle)
	}
	return wakebell.Handle(wakebell.NewTopic[[]byte](h.name), handle, h.topicOptions()...)
}

// prepare opens the webhook, and returns an error if the command cannot be run.
func (h *handled) prepare(ctx context.Context, p *posting) error {
	if err := h.openPost(p); err != nil {
		return err
	}
	if h.exec == "" {
		return nil
	}
	if err := process.CheckShell(ctx, h.exec); err != nil {
		return fmt.Errorf("--exec of %q: %w", h.name, err)
	}
	return nil
}

// live reports whether a flag can change without a new handler.
func (h *handled) live(flag string) bool {
	if h.post.url != "" && (flag == "exec" || flag == "lease-ttl" || flag == "visibility-timeout") {
		return false // the timeout of the webhook follows the lease
	}
	if flag == "exec" || flag == "visibility-timeout" || flag == "max-deliveries" {
		return true
	}
	return slices.ContainsFunc(tuning.All, func(t *tuning.Setting) bool { return t.Flag == flag })
}

// retune changes the settings of the running handler of a topic or queue to those of
// h, which takes its place.
func (h *handled) retune(sys *wakebell.System, running *handled) error {
	options := h.tunedTopic()
	if h.queue {
		options = topicTuning(h.tunedQueue())
	}
	if err := sys.RetuneLocal(h.name, options...); err != nil {
		return err
	}
	h.script, h.hook = running.script, running.hook
	h.script.Store(&h.exec)
	return nil
}
