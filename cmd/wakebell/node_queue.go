package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

// queueFlags are what a node can be told of queues.
type queueFlags struct {
	queues            []string
	names             wakebell.QueueName // without the name
	visibility        time.Duration
	maxDeliveries     int
	completed, failed int
	errorsFinal, once bool
	given             func(flag string) bool
}

func (f *queueFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.queues, "queue", nil, "`queue` to handle; may be repeated")
	separatorFlag(cmd, &f.names)
	flags.DurationVar(&f.visibility, "visibility-timeout", 5*time.Minute, "how long a crashed node keeps its messages from others")
	flags.IntVar(&f.maxDeliveries, "max-deliveries", 10, "delivery after which a message becomes a dead letter")
	flags.IntVar(&f.completed, "completed", 0, "payloads kept of messages that were handled")
	flags.IntVar(&f.failed, "failed", 0, "payloads kept of messages that failed under --errors-are-final or --at-most-once")
	flags.BoolVar(&f.errorsFinal, "errors-are-final", false, "do not try messages again that a handler failed on")
	flags.BoolVar(&f.once, "at-most-once", false, "deliver no message twice; those of a node that dies are lost")
	f.given = flags.Changed
}

// named are the queues that the node names to peers with their keys: those that it
// handles, and those of peers, which are names with commas between them.
func (f *queueFlags) named(peers string) (all []wakebell.QueueName) {
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

// queueHandlers handles the queues like topics, but for what has a flag of its
// own.
func (f *queueFlags) queueHandlers(node *nodeFlags, handle rawHandler) []wakebell.Handler {
	options := []wakebell.HandlerOption{
		wakebell.MaxConcurrent(node.maxConcurrent), wakebell.PollingInterval(node.polling),
		wakebell.RetryBackoff(node.retryFirst, node.retryMax), wakebell.LeaseTTL(f.visibility),
		wakebell.MaxAttempts(f.maxDeliveries), wakebell.KeepCompleted(f.completed), wakebell.KeepFailed(f.failed),
	}
	if f.given("max-lease-age") {
		options = append(options, wakebell.MaxLeaseAge(node.leaseAge))
	}
	if f.given("max-polling-interval") {
		options = append(options, wakebell.MaxPollingInterval(node.maxPolling))
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
		t.ContentType = payload(t.Raw).ContentType
		return handle(ctx, t)
	}
	var handlers []wakebell.Handler
	for _, name := range f.queues {
		q := wakebell.NewQueue[[]byte](name, queueOptions(f.names)...)
		handlers = append(handlers, wakebell.Handle(q, shown, options...))
	}
	return handlers
}
