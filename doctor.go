package wakebell

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/redisops/doctor"
	"github.com/wakebell/wakebell/wakebelltype"
)

// reachable reports whether a server answered.
func reachable(found []wakebelltype.Finding) bool {
	return slices.ContainsFunc(found, func(f wakebelltype.Finding) bool {
		return f.Check == "reachable" && f.Grade != wakebelltype.GradeBad
	})
}

// Diagnose checks whether Redis is suitable for these topics. It checks latency,
// version, eviction policy, memory, persistence, replicas and clock of the
// server, keys without a topic, and for each topic its slots, the types of its keys, scripts, the
// permissions of the user, cluster-wide settings, data without a timer, whether nodes
// handle it, whether its due timers make progress, whether dead letters grow, and
// whether the settings and versions of nodes differ. For recurring schedules it checks that a beat
// runs. It writes nothing. A check that cannot run is Unknown and does not affect the
// others, so every check has a Finding; docs/cli.md lists them. The error
// concerns the arguments.
//
// Diagnose reads up to about 100,000 entries of all topics together, a few hundred of
// each at a time, at least 100 of each, and up to 100,000 keys. It asks nodes for their settings, and waits for a second at most.
func (c *Client) Diagnose(ctx context.Context, topics ...string) ([]wakebelltype.Finding, error) {
	full := make([]string, len(topics))
	for i, topic := range topics {
		var err error
		if full[i], err = c.fullName(topic); err != nil {
			return nil, err
		}
	}
	names, err := c.physicalOr(ctx, full)
	if err != nil {
		return nil, err
	}
	found, err := doctor.Diagnose(ctx, c.store.Timers(), names...)
	if err != nil {
		return nil, err
	}
	return append(found, c.attended(ctx, full, reachable(found))...), nil
}

// modulePath is the path of this module.
const modulePath = "github.com/wakebell/wakebell"

// moduleVersion returns the version of Wakebell in this program; "(devel)" for a build
// from the source tree.
func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	if info.Main.Path == modulePath {
		return info.Main.Version
	}
	for _, m := range info.Deps {
		if m.Path == modulePath {
			return m.Version
		}
	}
	return ""
}

// nodeName returns the Node of events: host, process id and name of the System.
func nodeName(system string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%s", cmp.Or(host, "unknown"), os.Getpid(), system)
}

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
