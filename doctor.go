package wakebell

import (
	"context"

	"github.com/wakebell/wakebell/redisops/doctor"
)

// Finding is what one check of Client.Diagnose found: whether it is good, and
// what to do if it is not.
type Finding = doctor.Finding

// Grade says how a check came out.
type Grade = doctor.Grade

// Grades of a Finding.
const (
	// Good: as it should be.
	Good = doctor.Good
	// Warn: it works, and timers may be late or lost in a case that is named.
	Warn = doctor.Warn
	// Bad: timers are not kept, not delivered or not safe.
	Bad = doctor.Bad
	// Unknown: the check could not be made; the Finding says why.
	Unknown = doctor.Unknown
)

// Diagnose checks whether Redis is fit to keep these topics: whether it answers
// and how fast, its version, eviction policy, memory, persistence, replicas and
// clock; and of each topic its slots, the types of its keys, whether scripts
// run, the rights of the user, orders, and what belongs to no timer. It writes
// nothing. A check that cannot be made is Unknown and stops no other, so
// every check has its Finding; docs/cli.md lists them. The error is about an
// argument.
//
// It looks at up to about 100,000 entries of each topic, a few hundred at a
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
