package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
)

// Grade says how a check came out.
type Grade string

const (
	// Good: as it should be.
	Good Grade = "good"
	// Warn: it works, and timers may be late or lost in a case that is named.
	Warn Grade = "warn"
	// Bad: timers are not kept, not delivered or not safe.
	Bad Grade = "bad"
	// Unknown: the check could not be made; Found says why.
	Unknown Grade = "unknown"
)

// Finding is what one check of Diagnose found.
type Finding struct {
	Check  string // its name, which does not change: one of Checks
	Server string // host:port of the master it is about, in a Cluster; else empty
	Topic  string // the topic it is about; empty: the server
	Grade  Grade
	Found  string // what there is
	Do     string // what to do about it; empty when there is nothing to do
}

// Checks are the names of all checks, in their order: first those of the
// server, then those of a topic.
func Checks() []string { return append(slices.Clone(serverChecks), topicChecks...) }

var (
	serverChecks = []string{"reachable", "version", "eviction", "memory", "persistence", "replicas", "clock"}
	topicChecks  = []string{"slots", "types", "scripts", "rights", "orders", "orphans"}
)

// Diagnose checks whether Redis is fit to keep these topics, and what is wrong
// with them. It writes nothing, but for a message that no node reads. A check
// that cannot be made is Unknown and stops no other, so every check has a
// Finding: those of the server once, or for each master of a Cluster, and
// those of a topic for each topic. The error wraps [ErrInvalid], and is about
// a topic.
func Diagnose(ctx context.Context, s *timers.Timers, topics ...string) ([]Finding, error) {
	for _, topic := range topics {
		if err := layout.CheckTopic(topic); err != nil {
			return nil, err
		}
	}
	d := &doctor{Timers: s}
	down := d.servers(ctx)
	for _, topic := range topics {
		p := &patient{doctor: d, topic: topic, keys: s.Keys().Of(topic)}
		if down != nil {
			d.unmade(topicChecks, Finding{Topic: topic}, down)
			continue
		}
		p.examine(ctx)
	}
	return d.findings, nil
}

// doctor gathers findings.
type doctor struct {
	*timers.Timers
	findings []Finding
}

func (d *doctor) add(f Finding) { d.findings = append(d.findings, f) }

// unmade adds that checks could not be made.
func (d *doctor) unmade(checks []string, f Finding, why error) {
	for _, check := range checks {
		f.Check, f.Grade, f.Found = check, Unknown, "not checked: "+why.Error()
		d.add(f)
	}
}

var errUnreachable = errors.New("redis is not reachable")

// servers checks the server, or all masters of a Cluster; the error is that
// none of them answers.
func (d *doctor) servers(ctx context.Context) error {
	nodes, err := d.Nodes(ctx)
	if err != nil {
		d.unreachable("", scripts.Wrap(ctx, nil, err))
		return errUnreachable
	}
	down := errUnreachable
	for _, node := range nodes {
		v := &visit{doctor: d, node: node}
		if client, ok := node.(*redis.Client); ok && len(nodes) > 1 {
			v.server = client.Options().Addr
		}
		if v.examine(ctx) {
			down = nil
		}
	}
	return down
}

func (d *doctor) unreachable(server string, err error) {
	do := "start Redis, or give its right address"
	var fromRedis redis.Error
	switch {
	case redis.IsPermissionError(err), redis.IsAuthError(err):
		do = "give the right user and password, and the user +@connection"
	case errors.As(err, &fromRedis) && errors.Is(err, exchange.ErrUnavailable):
		do = "wait until it serves again, or mend what it says"
	}
	d.add(Finding{Check: serverChecks[0], Server: server, Grade: Bad, Found: err.Error(), Do: do})
	d.unmade(serverChecks[1:], Finding{Server: server}, errUnreachable)
}

// worse is the graver of two grades; what is not known is less than a warning.
func worse(a, b Grade) Grade {
	order := []Grade{Good, Unknown, Warn, Bad}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

func inMillis(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000)
}
