package node

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// queueFlags are the flags of node about one queue, beside those of topics.
type queueFlags struct {
	names             wakebelltype.QueueKeys // without the name
	visibility        time.Duration
	maxDeliveries     int
	completed, failed int
	errorsFinal, once bool
}

// queueTuning are the settings of topics that queues have as well.
var queueTuning = []*tuning.Setting{
	tuning.MaxConcurrent, tuning.MaxLeaseAge, tuning.PollingInterval, tuning.MaxPollingInterval, tuning.RetryInitial, tuning.RetryLimit,
	tuning.RateLimit, tuning.RatePer, tuning.RateBurst, tuning.MaxInFlight,
}

func (f *queueFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	cli.SeparatorFlag(cmd, &f.names)
	cli.DurationVar(flags, &f.visibility, "visibility-timeout", 5*time.Minute, "time until the messages of a crashed node are redelivered")
	flags.IntVar(&f.maxDeliveries, "max-deliveries", 10, "deliveries after which a message becomes a dead letter")
	flags.IntVar(&f.completed, "completed", 0, "`number` of payloads of handled messages to keep")
	flags.IntVar(&f.failed, "failed", 0, "`number` of payloads to keep of messages that failed under --errors-are-final or --at-most-once")
	flags.BoolVar(&f.errorsFinal, "errors-are-final", false, "do not retry messages after an error of the handler")
	flags.BoolVar(&f.once, "at-most-once", false, "never deliver a message twice; messages of a crashed node are lost")
}

// named returns the queues whose keys peers use: the queues that the node handles,
// and those of --peer-queues.
func (f *nodeFlags) named() (all []wakebelltype.QueueKeys) {
	for _, h := range f.handled {
		if h.queue {
			of := h.names
			of.Name = h.name
			all = append(all, of)
		}
	}
	for name := range strings.SplitSeq(f.peerQueues, ",") {
		if name != "" && !slices.Contains(f.queues, name) {
			of := f.names
			of.Name = name
			all = append(all, of)
		}
	}
	return all
}

// tunedQueue returns the options of a queue that can change while it is handled: the
// settings of topics except for those that have a flag of their own.
func (h *handling) tunedQueue() []wakebell.TuningOption {
	options := []wakebell.TuningOption{
		wakebell.MaxConcurrent(h.tuned.MaxConcurrent), wakebell.PollingInterval(h.tuned.PollingInterval),
		wakebell.RetryBackoff(h.tuned.RetryInitial, h.tuned.RetryLimit), wakebell.MaxAttempts(h.maxDeliveries),
		wakebell.MaxLeaseAge(time.Hour), wakebell.MaxPollingInterval(time.Second), // the defaults of queues
		wakebell.RateLimit(h.tuned.RateLimit, h.tuned.RatePer, h.tuned.RateBurst), wakebell.MaxInFlight(h.tuned.MaxInFlight),
	}
	if !h.once { // AtMostOnce has a lifetime of its own
		options = append(options, wakebell.LeaseTTL(h.visibility))
	}
	if h.flags.Changed("max-lease-age") {
		options = append(options, wakebell.MaxLeaseAge(h.tuned.MaxLeaseAge))
	}
	if h.flags.Changed("max-polling-interval") {
		options = append(options, wakebell.MaxPollingInterval(h.tuned.MaxPollingInterval))
	}
	return options
}

// queueHandler returns the handler of a queue.
func (h *handled) queueHandler(handle rawHandler) wakebell.Handler {
	options := []wakebell.QueueHandlerOption{
		wakebell.KeepCompleted(h.completed), wakebell.KeepFailed(h.failed), wakebell.History(h.history),
	}
	for _, option := range h.tunedQueue() {
		options = append(options, option)
	}
	for _, option := range h.guardOptions() {
		options = append(options, option)
	}
	if h.discardRejected {
		options = append(options, wakebell.DiscardRejected())
	}
	if h.errorsFinal {
		options = append(options, wakebell.ErrorsAreFinal())
	}
	if h.once {
		options = append(options, wakebell.AtMostOnce())
	}
	shown := func(ctx context.Context, t wakebell.Timer[[]byte]) error {
		t.ContentType = output.MessageContent(t.Body).ContentType
		return handle(ctx, t)
	}
	return wakebell.HandleQueue(queue.New[[]byte](h.name, cli.QueueOptions(h.names)...), shown, options...)
}
