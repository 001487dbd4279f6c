package wakebell

import (
	"context"

	"github.com/wakebell/wakebell/redisops/doctor"
)

// Finding is the result of one check of Client.Diagnose, with advice if the
// check did not pass.
type Finding = doctor.Finding

// Grade is the severity of a Finding.
type Grade = doctor.Grade

// Grades of a Finding.
const (
	// Good means that the check passed.
	Good = doctor.Good
	// Warn means that timers may be late or lost in the case that the Finding
	// names.
	Warn = doctor.Warn
	// Bad means that timers are not stored, not delivered or not safe.
	Bad = doctor.Bad
	// Unknown means that the check could not run; the Finding gives the reason.
	Unknown = doctor.Unknown
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
func (c *Client) Diagnose(ctx context.Context, topics ...string) ([]Finding, error) {
	full := make([]string, len(topics))
	for i, topic := range topics {
		var err error
		if full[i], err = c.fullName(topic); err != nil {
			return nil, err
		}
	}
	return doctor.Diagnose(ctx, c.store, full...)
}
