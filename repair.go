package wakebell

import (
	"context"

	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Repair restores what it can of a topic after a key of it was deleted or evicted, or a
// partial restore; without o.Apply it only says what it would do. Payloads without a timer
// get their timers back: at the instants that their lease records or keys have, and others at
// o.At. Timers without a payload are counted, and become dead letters with o.DropMissing,
// unless a handler has them. Lease records and keys of timers with neither are removed.
//
// It works in small steps while nodes and clients use the topic; nodes mend within a minute
// which timers hold their keys. After an error, the result counts what was done, and another
// call continues. The error wraps ErrInvalid while the topic is being resharded.
func (c *Client) Repair(ctx context.Context, topic string, o wakebelltype.RepairOptions) (wakebelltype.Repaired, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.Repaired{}, err
	}
	done, err := c.store.Repair(ctx, full, o)
	if o.Apply {
		c.record(ctx, wakebelltype.AuditTopicRepair, full, audit.Result{Count: done.Restored + done.Dropped + done.Removed, Err: err})
	}
	return done, err
}
