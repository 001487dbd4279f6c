package wakebell

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Tail returns an iterator over the events of a topic on all nodes, as they
// happen, until the loop or ctx ends. After an error, which it yields with a zero
// Event, it ends.
//
// Events may be missed. A node sends at most 20,000 events of a topic per second,
// and reports how many it dropped. Nodes send events only while at least one Tail
// runs; a node that starts handling the topic buffers up to 1,000 events for 3 s,
// until it knows whether one does. Python workers send no events.
//
// Errors are ErrUnavailable if Redis does not answer at the start (later outages
// are waited out), ErrChannelDenied, and the error of ctx.
func (c *Client) Tail(ctx context.Context, topic string) iter.Seq2[wakebelltype.Event, error] {
	return func(yield func(wakebelltype.Event, error) bool) {
		full, err := c.fullName(topic)
		if err == nil {
			err = c.store.Tail(ctx, full, func(e wakebelltype.Event) bool { return yield(e, nil) })
		}
		if err != nil {
			yield(wakebelltype.Event{}, err)
		}
	}
}

// nodeName returns the Node of events: host, process id and name of the System.
func nodeName(system string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%s", cmp.Or(host, "unknown"), os.Getpid(), system)
}
