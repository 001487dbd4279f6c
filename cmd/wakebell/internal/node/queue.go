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
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// queueFlags are the flags of node about queues.
type queueFlags struct {
	queues            []string
	names             wakebelltype.QueueKeys // without the name
	visibility        time.Duration
	maxDeliveries     int
	completed, failed int
	errorsFinal, once bool
	given             func(flag string) bool
}

func (f *queueFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.queues, "queue", nil, "`queue` to handle; can be repeated")
	cli.SeparatorFlag(cmd, &f.names)
	cli.DurationVar(flags, &f.visibility, "visibility-timeout", 5*time.Minute, "time until the messages of a crashed node are redelivered")
	flags.IntVar(&f.maxDeliveries, "max-deliveries", 10, "deliveries after which a message becomes a dead letter")
	flags.IntVar(&f.completed, "completed", 0, "`number` of payloads of handled messages to keep")
	flags.IntVar(&f.failed, "failed", 0, "`number` of payloads to keep of messages that failed under --errors-are-final or --at-most-once")
	flags.BoolVar(&f.errorsFinal, "errors-are-final", false, "do not retry messages after an error of the handler")
	flags.BoolVar(&f.once, "at-most-once", false, "never deliver a message twice; messages of a crashed node are lost")
	f.given = flags.Changed
}

// named returns the queues whose keys peers use: the queues that the node handles,
// and peers, a comma-separated list of names.
func (f *queueFlags) named(peers string) (all []wakebelltype.QueueKeys) {
	names := f.queues
	if peers != "" {
		names = append(slices.Clone(names), strings.Split(peers, ",")...)
	}
	for _, name := range names {
		of := f.names
		of.Name = name
		all = append(all, of)
	}
	return all
}

// queueHandlers returns the handlers of the queues, with the settings of topics
// except for those that have a flag of their own.
func (f *queueFlags) queueHandlers(node *nodeFlags, handle rawHandler) []wakebell.Handler {
	options := []wakebell.QueueHandlerOption{
		wakebell.MaxConcurrent(node.tuned.MaxConcurrent), wakebell.PollingInterval(node.tuned.PollingInterval),
		wakebell.RetryBackoff(node.tuned.RetryInitial, node.tuned.RetryLimit), wakebell.LeaseTTL(f.visibility),
		wakebell.MaxAttempts(f.maxDeliveries), wakebell.KeepCompleted(f.completed), wakebell.KeepFailed(f.failed),
	}
	if f.given("max-lease-age") {
		options = append(options, wakebell.MaxLeaseAge(node.tuned.MaxLeaseAge))
	}
	if f.given("max-polling-interval") {
		options = append(options, wakebell.MaxPollingInterval(node.tuned.MaxPollingInterval))
	}
	if node.discardRejected {
		options = append(options, wakebell.DiscardRejected())
	}
	if f.errorsFinal {
		options = append(options, wakebell.ErrorsAreFinal())
	}
	if f.once {
		options = append(options, wakebell.AtMostOnce())
	}
	shown := func(ctx context.Context, t wakebell.Timer[[]byte]) error {
		t.ContentType = output.MessageContent(t.Body).ContentType
		return handle(ctx, t)
	}
	var handlers []wakebell.Handler
	for _, name := range f.queues {
		q := queue.New[[]byte](name, cli.QueueOptions(f.names)...)
		handlers = append(handlers, wakebell.HandleQueue(q, shown, options...))
	}
	return handlers
}
