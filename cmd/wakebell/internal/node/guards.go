package node

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

// guardFlags are the flags of node that protect a handler, of topics and queues.
type guardFlags struct {
	group    string                // empty: none
	weight   int                   // in group
	adaptive wakebelltype.Adaptive // Min 0: none
	breaker  wakebelltype.Breaker  // FailureRatio 0: none
}

func (f *guardFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.group, "group", "", "`name` of a group of topics and queues that share the largest --max-concurrent of them by --weight")
	flags.IntVar(&f.weight, "weight", 1, "part of a topic in its --group while several have timers that are due, 1 to 1,000")
	flags.IntVar(&f.adaptive.Min, "min-concurrent", 0, "lower --max-concurrent to no less than this while the handler is slow or fails, 1 to 10,000; 0: never")
	flags.Float64Var(&f.breaker.FailureRatio, "breaker", 0, "`part` of deliveries, 0.01 to 1, at whose failure the circuit breaker pauses a topic on the node; 0: never")
	flags.IntVar(&f.breaker.Deliveries, "breaker-deliveries", 20, "deliveries below which --breaker does not pause a topic, 1 to 1,000,000")
	cli.DurationVar(flags, &f.breaker.Window, "breaker-window", time.Minute, "how far back deliveries count for --breaker")
	cli.DurationVar(flags, &f.breaker.OpenFor, "breaker-open-for", 30*time.Second, "how long --breaker pauses a topic until one timer is tried")
}

// options returns the options of a handler.
func (f *guardFlags) guardOptions() (all []wakebell.CommonOption) {
	if f.group != "" {
		all = append(all, wakebell.Weight(f.group, f.weight))
	}
	if f.adaptive.Min != 0 {
		all = append(all, wakebell.AdaptiveConcurrency(f.adaptive))
	}
	if f.breaker.FailureRatio != 0 {
		all = append(all, wakebell.Breaker(f.breaker))
	}
	return all
}
