package wakebell

import (
	"context"

	"github.com/wakebell/wakebell/redisops/doctor"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Diagnose checks whether Redis is suitable for these topics. It checks latency,
// version, eviction policy, memory, persistence, replicas and clock of the
// server, and for each topic its slots, the types of its keys, scripts, the
// permissions of the user, cluster-wide settings, and data without a timer. It
// writes nothing. A check that cannot run is Unknown and does not affect the
// others, so every check has a Finding; docs/cli.md lists them. The error
// concerns the arguments.
//
// Diagnose reads up to about 100,000 entries of each topic, a few hundred at a
// time.
func (c *Client) Diagnose(ctx context.Context, topics ...string) ([]wakebelltype.Finding, error) {
	full := make([]string, len(topics))
	for i, topic := range topics {
		var err error
		if full[i], err = c.fullName(topic); err != nil {
			return nil, err
		}
	}
	return doctor.Diagnose(ctx, c.store, full...)
}
