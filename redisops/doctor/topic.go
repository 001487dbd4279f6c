package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// topicsAtOnce is how many topics one pipeline asks about.
const topicsAtOnce = 100

// topicExam examines one topic.
type topicExam struct {
	*doctor
	topic    string
	keys     timers.TopicKeys
	findings []wakebelltype.Finding
}

func (p *topicExam) add(check string, g wakebelltype.Grade, found, do string) {
	p.findings = append(p.findings, wakebelltype.Finding{Check: check, Topic: p.topic, Grade: g, Found: found, Do: do})
}

func (p *topicExam) unknown(check string, err error) {
	p.add(check, wakebelltype.GradeUnknown, "not checked: "+err.Error(), "")
}

// topics examines topics. Each question is one pipeline for all of them, so that the time
// does not grow with the round trips.
func (d *doctor) topics(ctx context.Context, names []string) {
	clustered := d.Clustered(ctx)
	share := max(orphanLeast, orphanLimit/max(1, len(names)))
	for part := range slices.Chunk(names, topicsAtOnce) {
		all := make([]*topicExam, len(part))
		var fit []*topicExam
		for i, topic := range part {
			p := &topicExam{doctor: d, topic: topic, keys: d.Keys().Of(topic)}
			if all[i] = p; p.slots(clustered) {
				fit = append(fit, p)
				continue
			}
			for _, check := range topicChecks[1:] {
				p.unknown(check, fmt.Errorf("%w: the keys are in several slots", wakebelltype.ErrUnsupported))
			}
		}
		d.types(ctx, fit)
		d.scripts(ctx, fit)
		d.rights(ctx, fit)
		d.orders(ctx, fit)
		d.moves(ctx, fit)
		d.orphans(ctx, fit, share)
		for _, p := range all {
			d.findings = append(d.findings, p.findings...)
		}
	}
}

// slots returns false if a Cluster spreads the topic over several slots.
func (p *topicExam) slots(clustered bool) bool {
	if !clustered {
		p.add("slots", wakebelltype.GradeGood, "not a Cluster", "")
		return true
	}
	if err := p.CheckSlots(p.topic); err != nil {
		p.add("slots", wakebelltype.GradeBad, err.Error(), "set Keys.HashTag (--hash-tag); a Python peer then uses {"+p.topic+"} as its topic")
		return false
	}
	p.add("slots", wakebelltype.GradeGood, "all keys in slot "+strconv.Itoa(layout.SlotOf(p.keys.Timeline)), "")
	return true
}

// kindOf is the type that a key of a topic should have.
type kindOf struct{ key, kind string }

func (p *topicExam) kinds() []kindOf {
	return []kindOf{
		{p.keys.Timeline, "zset"},
		{p.keys.Payloads, "hash"},
		{p.keys.Leases, "hash"},
		{p.keys.Dead, "stream"},
		{p.keys.Hint, "string"},
		{p.keys.Flow, "zset"},
		{p.keys.TimerKeys, "hash"},
		{p.keys.KeyOrder, "zset"},
		{p.keys.KeyStates, "hash"},
		{p.keys.KeyRates, "zset"},
		{p.keys.KeyTurns, "zset"},
		{p.keys.Control, "hash"},
		{p.keys.Counts, "hash"},
		{p.keys.History, "stream"},
		{p.keys.Nodes, "zset"},
		{p.keys.Reports, "hash"},
	}
}

func (d *doctor) types(ctx context.Context, all []*topicExam) {
	pipe := d.RDB.Pipeline()
	replies := make([][]*redis.StatusCmd, len(all))
	for i, p := range all {
		for _, w := range p.kinds() {
			replies[i] = append(replies[i], pipe.Type(ctx, w.key))
		}
	}
	_, _ = pipe.Exec(ctx) // each reply has its own error
	for i, p := range all {
		p.typesOf(ctx, replies[i])
	}
}

func (p *topicExam) typesOf(ctx context.Context, replies []*redis.StatusCmd) {
	var wrong []string
	want := p.kinds()
	for i, reply := range replies {
		found, err := reply.Result()
		if err != nil {
			p.unknown("types", scripts.Wrap(ctx, nil, err))
			return
		}
		if found != want[i].kind && found != "none" {
			wrong = append(wrong, fmt.Sprintf("%q holds a %s, want %s", want[i].key, found, want[i].kind))
		}
	}
	if len(wrong) > 0 {
		p.add("types", wakebelltype.GradeBad, strings.Join(wrong, "; "), "rename or remove what is not Wakebell's, or choose other Keys")
		return
	}
	p.add("types", wakebelltype.GradeGood, "all keys hold what they should", "")
}

// scripts runs a script that writes nothing but is refused in the same cases as a
// poller's: on a replica, with a full disk, or with too few replicas.
func (d *doctor) scripts(ctx context.Context, all []*topicExam) {
	tries := make([]try, len(all))
	for i, p := range all {
		tries[i] = try{p.keys.Leases, "HDEL", []string{none}}
	}
	said, errs := d.runCommands(ctx, tries)
	for i, p := range all {
		p.scriptsOf(said[i], errs[i])
	}
}

func (p *topicExam) scriptsOf(said, err error) {
	switch err = errors.Join(said, err); {
	case err == nil, scripts.IsDenied(said):
		p.add("scripts", wakebelltype.GradeGood, "loaded and run", "") // the check rights reports what the user may not do
	case scripts.IsDenied(err):
		p.add("scripts", wakebelltype.GradeBad, err.Error(), "give the user +@scripting, +time and the topic's keys")
	default:
		p.add("scripts", wakebelltype.GradeBad, err.Error(), "fix the error that Redis reports: every operation needs scripts")
	}
}

func (d *doctor) orders(ctx context.Context, all []*topicExam) {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.topic
	}
	controls, errs := d.Controls(ctx, names...)
	for i, p := range all {
		p.ordersOf(controls[i], errs[i])
	}
}

func (p *topicExam) ordersOf(c wakebelltype.Control, err error) {
	switch {
	case scripts.IsDenied(err):
		p.unknown("orders", err) // the check rights recommends what to do
	case err != nil:
		p.add("orders", wakebelltype.GradeBad, err.Error(), "correct or remove the field: running nodes keep their control, and new nodes do not start the topic")
	case c.Paused:
		said := "paused by " + c.PausedBy
		if !c.PausedUntil.IsZero() {
			said += " until " + c.PausedUntil.UTC().Format(time.RFC3339)
		}
		p.add("orders", wakebelltype.GradeWarn, said+": "+c.Reason, "resume it when it is time")
	case c.Settings != wakebelltype.Settings{}:
		p.add("orders", wakebelltype.GradeGood, "not paused; overrides apply to all nodes", "")
	default:
		p.add("orders", wakebelltype.GradeGood, "none", "")
	}
}
