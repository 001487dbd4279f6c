package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// orphanLimit is about how many entries of a key are examined for orphans.
const orphanLimit = 100_000

// barePage is how many entries one script call examines.
const barePage = 512

// topicExam examines one topic.
type topicExam struct {
	*doctor
	topic string
	keys  timers.TopicKeys
}

func (p *topicExam) add(check string, g wakebelltype.Grade, found, do string) {
	p.doctor.add(wakebelltype.Finding{Check: check, Topic: p.topic, Grade: g, Found: found, Do: do})
}

func (p *topicExam) unknown(check string, err error) {
	p.notChecked([]string{check}, wakebelltype.Finding{Topic: p.topic}, err)
}

func (p *topicExam) examine(ctx context.Context) {
	if !p.slots(ctx) {
		p.notChecked(topicChecks[1:], wakebelltype.Finding{Topic: p.topic}, fmt.Errorf("%w: the keys are in several slots", wakebelltype.ErrUnsupported))
		return
	}
	p.types(ctx)
	p.scripts(ctx)
	p.rights(ctx)
	p.orders(ctx)
	p.orphans(ctx)
}

// slots returns false if a Cluster spreads the topic over several slots.
func (p *topicExam) slots(ctx context.Context) bool {
	if !p.Clustered(ctx) {
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

func (p *topicExam) types(ctx context.Context) {
	want := []struct{ key, kind string }{
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
		{p.keys.Control, "hash"},
		{p.keys.Counts, "hash"},
		{p.keys.History, "stream"},
		{p.keys.Nodes, "zset"},
		{p.keys.Reports, "hash"},
	}
	pipe := p.RDB.Pipeline()
	replies := make([]*redis.StatusCmd, len(want))
	for i, w := range want {
		replies[i] = pipe.Type(ctx, w.key)
	}
	_, _ = pipe.Exec(ctx) // each reply has its own error
	var wrong []string
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
func (p *topicExam) scripts(ctx context.Context) {
	said, err := p.runCommand(ctx, p.keys.Leases, "HDEL", none)
	switch err = errors.Join(said, err); {
	case err == nil, scripts.IsDenied(said):
		p.add("scripts", wakebelltype.GradeGood, "loaded and run", "") // the check rights reports what the user may not do
	case scripts.IsDenied(err):
		p.add("scripts", wakebelltype.GradeBad, err.Error(), "give the user +@scripting, +time and the topic's keys")
	default:
		p.add("scripts", wakebelltype.GradeBad, err.Error(), "fix the error that Redis reports: every operation needs scripts")
	}
}

func (p *topicExam) orders(ctx context.Context) {
	c, err := p.Control(ctx, p.topic)
	switch {
	case scripts.IsDenied(err):
		p.unknown("orders", err) // the check rights recommends what to do
	case err != nil:
		p.add("orders", wakebelltype.GradeBad, err.Error(), "correct or remove the field: running nodes keep their control, and new nodes do not start the topic")
	case c.Paused:
		p.add("orders", wakebelltype.GradeWarn, "paused by "+c.PausedBy+": "+c.Reason, "resume it when it is time")
	case c.Settings != wakebelltype.Settings{}:
		p.add("orders", wakebelltype.GradeGood, "not paused; overrides apply to all nodes", "")
	default:
		p.add("orders", wakebelltype.GradeGood, "none", "")
	}
}

// What to do about orphans.
const (
	orphansFew  = "nothing if few: nodes remove them, and dead-letter timers without a payload. If they return, find the program that writes or deletes keys directly"
	orphansMany = "a key was deleted or evicted: nodes leave payloads without a timer. Run wakebell repair, which shows first what it restores"
)

// orphans looks for payloads and records without a timer, and for timers without a
// payload.
func (p *topicExam) orphans(ctx context.Context) {
	var found []string
	all, grade, do := true, wakebelltype.GradeWarn, orphansFew
	lost := func(n, of int) {
		if layout.Excessive(int64(n), int64(of)) {
			grade, do = wakebelltype.GradeBad, orphansMany
		}
	}
	for _, hash := range []struct{ key, what string }{{p.keys.Payloads, "payloads"}, {p.keys.Leases, "lease records"}, {p.keys.TimerKeys, "keys of timers"}} {
		at := timers.Sweep{}
		done, err := p.Sweep(ctx, p.keys, hash.key, &at, orphanLimit, false)
		if err != nil {
			p.unknown("orphans", fmt.Errorf("%q: %w", hash.key, err))
			return
		}
		all = all && at.Cursor == ""
		if done.Orphans > 0 {
			found = append(found, fmt.Sprintf("%d %s without a timer", done.Orphans, hash.what))
			if hash.key == p.keys.Payloads {
				lost(done.Orphans, done.Examined)
			}
		}
	}
	missing, examined, ended, err := p.withoutPayload(ctx)
	if err != nil {
		p.unknown("orphans", err)
		return
	}
	if missing > 0 {
		found = append(found, fmt.Sprintf("%d timers without a payload", missing))
		lost(missing, examined)
	}
	text := strings.Join(found, ", ")
	if len(found) == 0 {
		text = "none"
	}
	if !all || !ended {
		text += fmt.Sprintf(", among about %d entries of a larger topic", orphanLimit)
	}
	if len(found) > 0 {
		p.add("orphans", grade, text, do)
		return
	}
	p.add("orphans", wakebelltype.GradeGood, text, "")
}

// withoutPayload counts timers without a payload among those that it examined; ended
// reports that these are all.
func (p *topicExam) withoutPayload(ctx context.Context) (missing, examined int, ended bool, err error) {
	cursor := "0"
	for examined < orphanLimit {
		list, err := p.RunList(ctx, 3, bareScript, []string{p.keys.Timeline, p.keys.Payloads}, cursor, barePage)
		if err != nil {
			return 0, 0, false, err
		}
		values, err := scripts.Texts(list)
		if err != nil {
			return 0, 0, false, err
		}
		seen, err1 := strconv.Atoi(values[1])
		bare, err2 := strconv.Atoi(values[2])
		if err1 != nil || err2 != nil {
			return 0, 0, false, scripts.ErrReply
		}
		examined += max(seen, 1)
		missing += bare
		if cursor = values[0]; cursor == "0" {
			return missing, examined, true, nil
		}
	}
	return missing, examined, false, nil
}
