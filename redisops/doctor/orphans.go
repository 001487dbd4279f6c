package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// orphanLimit is about how many entries of a kind are examined for orphans: of one
	// topic, or of all together, but of each at least orphanLeast.
	orphanLimit = 100_000
	orphanLeast = 100
	// barePage is how many entries one script call examines.
	barePage = 512
)

// What to do about orphans.
const (
	orphansFew  = "nothing if few: nodes remove them, and dead-letter timers without a payload. If they return, find the program that writes or deletes keys directly"
	orphansMany = "a key was deleted or evicted: nodes leave payloads without a timer. Run wakebell repair, which shows first what it restores"
)

// bare counts the timers of a topic that have no payload.
type bare struct {
	cursor            string
	missing, examined int
	err               error
}

// orphans looks for payloads and records without a timer, and for timers without a
// payload, among about limit of each topic.
func (d *doctor) orphans(ctx context.Context, all []*topicExam, limit int) {
	var every []*timers.Scan
	scans := make([][]*timers.Scan, len(all))
	for i, p := range all {
		for _, hash := range []string{p.keys.Payloads, p.keys.Leases, p.keys.TimerKeys} {
			scans[i] = append(scans[i], &timers.Scan{Keys: p.keys, Hash: hash})
		}
		every = append(every, scans[i]...)
	}
	d.CountOrphans(ctx, limit, every...)
	bares := d.withoutPayload(ctx, all, limit)
	for i, p := range all {
		p.orphansOf(scans[i], bares[i], limit)
	}
}

// kindsOfOrphans are the words for the scans of a topic.
var kindsOfOrphans = []string{"payloads", "lease records", "keys of timers"}

func (p *topicExam) orphansOf(scans []*timers.Scan, timeline *bare, limit int) {
	var found []string
	all, grade, do := timeline.cursor == "0", wakebelltype.GradeWarn, orphansFew
	lost := func(n, of int) {
		if layout.Excessive(int64(n), int64(of)) {
			grade, do = wakebelltype.GradeBad, orphansMany
		}
	}
	for i, c := range scans {
		if c.Err != nil {
			p.unknown("orphans", fmt.Errorf("%q: %w", c.Hash, c.Err))
			return
		}
		all = all && c.Ended
		if c.Orphans > 0 {
			found = append(found, fmt.Sprintf("%d %s without a timer", c.Orphans, kindsOfOrphans[i]))
			if i == 0 {
				lost(c.Orphans, c.Examined)
			}
		}
	}
	if timeline.err != nil {
		p.unknown("orphans", timeline.err)
		return
	}
	if timeline.missing > 0 {
		found = append(found, fmt.Sprintf("%d timers without a payload", timeline.missing))
		lost(timeline.missing, timeline.examined)
	}
	text := strings.Join(found, ", ")
	if len(found) == 0 {
		text, grade, do = "none", wakebelltype.GradeGood, ""
	}
	if !all {
		text += fmt.Sprintf(", among about %d entries of a larger topic", limit)
	}
	p.add("orphans", grade, text, do)
}

// withoutPayload counts timers without a payload among those that it examined. A cursor of 0
// says that these are all.
func (d *doctor) withoutPayload(ctx context.Context, all []*topicExam, limit int) []*bare {
	bares := make([]*bare, len(all))
	for i := range bares {
		bares[i] = &bare{}
	}
	for {
		var left []*bare
		var calls []scripts.Call
		for i, b := range bares {
			if b.err == nil && b.cursor != "0" && b.examined < limit {
				cursor := b.cursor
				if cursor == "" {
					cursor = "0"
				}
				left = append(left, b)
				calls = append(calls, scripts.Call{
					Script: bareScript,
					Keys:   []string{all[i].keys.Timeline, all[i].keys.Payloads}, Args: []any{cursor, min(barePage, limit-b.examined)},
				})
			}
		}
		if len(left) == 0 {
			return bares
		}
		replies, errs := d.RunMany(ctx, calls)
		for i, b := range left {
			b.err = b.add(replies[i], errs[i])
		}
	}
}

func (b *bare) add(reply any, err error) error {
	values, err := scripts.AsTexts(3, reply, err)
	if err != nil {
		return err
	}
	seen, err1 := strconv.Atoi(values[1])
	missing, err2 := strconv.Atoi(values[2])
	if err1 != nil || err2 != nil {
		return scripts.ErrReply
	}
	b.examined += max(seen, 1)
	b.missing += missing
	b.cursor = values[0]
	return nil
}
