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
	"github.com/wakebell/wakebell/wakebelltype"
)

// Checks returns the names of all checks in order: first those of the server, then that of
// all keys, then those of a topic.
func Checks() []string { return slices.Concat(serverChecks, []string{ownersCheck}, topicChecks) }

// ownersCheck is the check of keys that no known topic has.
const ownersCheck = "owners"

var (
	serverChecks = []string{"reachable", "version", "eviction", "memory", "persistence", "replicas", "clock"}
	topicChecks  = []string{"slots", "types", "scripts", "rights", "orders", "moves", "orphans"}
)

// Diagnose checks whether Redis is fit to store these topics, and examines their
// keys. It writes nothing, except a message on a channel that nodes ignore. A check
// that cannot run is Unknown and does not stop the others, so every check has a
// Finding: those of the server once, or for each master of a Cluster, and those of
// a topic for each topic. The error wraps [wakebelltype.ErrInvalid] and is about a topic.
func Diagnose(ctx context.Context, s *timers.Timers, topics ...string) ([]wakebelltype.Finding, error) {
	for _, topic := range topics {
		if err := layout.CheckTopic(topic); err != nil {
			return nil, err
		}
	}
	d := &doctor{Timers: s}
	down := d.servers(ctx)
	if down == nil {
		d.owners(ctx)
		d.topics(ctx, topics)
		return d.findings, nil
	}
	d.notChecked([]string{ownersCheck}, wakebelltype.Finding{}, down)
	for _, topic := range topics {
		d.notChecked(topicChecks, wakebelltype.Finding{Topic: topic}, down)
	}
	return d.findings, nil
}

// doctor collects findings.
type doctor struct {
	*timers.Timers
	findings []wakebelltype.Finding
	examined int // topics whose rights were checked
}

func (d *doctor) add(f wakebelltype.Finding) { d.findings = append(d.findings, f) }

// notChecked adds findings for checks that could not run.
func (d *doctor) notChecked(checks []string, f wakebelltype.Finding, why error) {
	for _, check := range checks {
		f.Check, f.Grade, f.Found = check, wakebelltype.GradeUnknown, "not checked: "+why.Error()
		d.add(f)
	}
}

var errUnreachable = errors.New("redis is not reachable")

// servers checks the server, or all masters of a Cluster. It returns an error if
// none of them answers.
func (d *doctor) servers(ctx context.Context) error {
	nodes, err := d.Nodes(ctx)
	if err != nil {
		d.unreachable("", scripts.Wrap(ctx, nil, err))
		return errUnreachable
	}
	down := errUnreachable
	for _, node := range nodes {
		v := &serverExam{doctor: d, node: node}
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
		do = "wait until Redis serves requests again, or fix the reported error"
	}
	d.add(wakebelltype.Finding{Check: serverChecks[0], Server: server, Grade: wakebelltype.GradeBad, Found: err.Error(), Do: do})
	d.notChecked(serverChecks[1:], wakebelltype.Finding{Server: server}, errUnreachable)
}

// worse returns the more severe of two grades; Unknown is less severe than Warn.
func worse(a, b wakebelltype.Grade) wakebelltype.Grade {
	order := []wakebelltype.Grade{wakebelltype.GradeGood, wakebelltype.GradeUnknown, wakebelltype.GradeWarn, wakebelltype.GradeBad}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

func inMillis(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000)
}
