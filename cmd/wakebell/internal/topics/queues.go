package topics

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// queueLine is a queue with its counts.
type queueLine struct {
	Queue         string `json:"queue"`
	Pending       int64  `json:"pending"`
	Processing    int64  `json:"processing"`
	Ended         int64  `json:"ended"`
	Dead          int64  `json:"dead"`
	Oldest        string `json:"oldest"`
	Separator     string `json:"separator"`
	DeadLetterKey string `json:"dead_letter_key"`
	Fault         string `json:"fault"`

	Throughput *cli.ThroughputLine `json:"throughput,omitempty"`

	keys   wakebelltype.QueueKeys
	stats  wakebelltype.QueueStats
	cursor string
}

// knownQueues returns the queues whose names begin with a prefix, with their counts
// and, if since is not 0, their throughput.
func knownQueues(ctx context.Context, of queue.Operator, prefix string, since time.Duration, page wakebelltype.Page) (all []queueLine, err error) {
	for q, err := range of.List(ctx, wakebelltype.Page{After: page.After}) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(q.Keys.Name, prefix) {
			continue
		}
		st, err := of.Stats(ctx, q.Keys)
		var line *cli.ThroughputLine
		if err == nil && since > 0 {
			var t wakebelltype.Throughput
			if t, err = of.Throughput(ctx, q.Keys, since); err == nil {
				line = cli.NewQueueThroughputLine(t)
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		all = append(all, queueLine{
			Queue: q.Keys.Name, Pending: st.Pending, Processing: st.Processing, Ended: st.Ended, Dead: st.Dead,
			Oldest: output.Stamp(st.Oldest), Separator: q.Keys.Separator, DeadLetterKey: q.Keys.DeadLetters,
			Fault: output.Fault(err), Throughput: line, keys: q.Keys, stats: st, cursor: q.Cursor,
		})
		if len(all) == page.Limit {
			break
		}
	}
	return all, nil
}

// queueColumns are the columns of queueRow.
func queueColumns() []output.Column {
	return []output.Column{
		output.Text("QUEUE"), output.Numeric("PENDING"), output.Numeric("PROCESSING"), output.Numeric("ENDED").AsMinor().StyledBy(warnUnlessZero),
		output.Numeric("DEAD").StyledBy(deadStyle), output.Short("OLDEST").AsMinor(), output.Text("FAULT").AsRare().Styled(output.Bad),
	}
}

func queueRow(screen output.Screen, q queueLine) []string {
	return []string{
		q.Queue, screen.Count(q.Pending), screen.Count(q.Processing), screen.Count(q.Ended), screen.Count(q.Dead), screen.Time(q.stats.Oldest), q.Fault,
	}
}

func warnUnlessZero(cell string) output.Style {
	if cell == "0" {
		return output.Plain
	}
	return output.Warn
}

// queueFinding is the check of a queue by doctor.
func queueFinding(q queueLine) findingLine {
	f := findingLine{Grade: string(wakebelltype.GradeGood), Check: "queue", Queue: q.Queue, Found: "its keys can be read"}
	switch {
	case q.Fault != "":
		f.Grade, f.Found = string(wakebelltype.GradeBad), q.Fault
		f.Do = "rename or remove what is not a queue's, or give the user the rights of docs/keys.md"
	case q.Pending > 0 && q.Processing == 0 && !q.stats.Oldest.IsZero() && q.stats.Now.Sub(q.stats.Oldest) > attended.Limit:
		f.Grade, f.Found = string(wakebelltype.GradeBad), fmt.Sprintf("no consumer takes its %s messages, the first of which has waited for %s",
			output.Number(q.Pending), q.stats.Now.Sub(q.stats.Oldest).Round(time.Second))
		f.Do = "start a consumer, or wakebell node --queue"
	case q.Ended > 0:
		f.Grade, f.Found = string(wakebelltype.GradeWarn), output.Number(q.Ended)+" leases have expired and were not claimed again"
		f.Do = "start consumers, or let more messages be handled at once"
	case q.stats.Unleased > 0:
		f.Grade, f.Found = string(wakebelltype.GradeWarn), output.Number(q.stats.Unleased)+" messages are held without a lease"
		f.Do = "nothing if consumers that deliver at most once handle them now, or if nodes give them new leases within minutes, because a deadline was lost. Otherwise their consumers are dead: they are not delivered again"
	}
	return f
}

// readRecords reads the counts of the last half hour and the history of a queue. Its error
// says what of them cannot be read.
func readRecords(ctx context.Context, of queue.Operator, name wakebelltype.QueueKeys) (wakebelltype.Throughput, error) {
	recent, err := of.Throughput(ctx, name, attended.Window*time.Minute)
	if err != nil {
		return recent, err
	}
	for _, err := range of.History(ctx, name, wakebelltype.HistoryFilter{Last: 1}, wakebelltype.Page{}) {
		return recent, err
	}
	return recent, nil
}

// deadFinding is the check of the dead letters of a queue by doctor.
func deadFinding(q queueLine, recent wakebelltype.Throughput, err error) findingLine {
	f := findingLine{Grade: string(wakebelltype.GradeUnknown), Check: "dead", Queue: q.Queue, Found: "not checked: the counts cannot be read"}
	if err != nil {
		return f
	}
	v := attended.Dead(q.Dead, recent)
	f.Grade, f.Found, f.Do = string(v.Grade), v.Found, strings.Replace(v.Do, "wakebell dead", "wakebell queue dead", 1)
	return f
}

// recordsFinding is the check of the counts and the history of a queue by doctor.
func recordsFinding(q queueLine, err error) findingLine {
	f := findingLine{Grade: string(wakebelltype.GradeGood), Check: "records", Queue: q.Queue, Found: "the counts and the history can be read"}
	if err != nil {
		f.Grade, f.Found = string(wakebelltype.GradeWarn), output.Fault(err)
		f.Do = "remove the key if it is not Wakebell's, or give the user the rights of docs/keys.md; without them counts and the history of attempts are missing"
	}
	return f
}

// listQueues prints the queues alone, as a table or as lines of JSON.
func listQueues(ctx context.Context, a *cli.App, of queue.Operator, prefix string, page cli.PageFlags) error {
	all, err := knownQueues(ctx, of, prefix, 0, page.Page())
	if err != nil {
		return err
	}
	list := a.NewListing(page.Limit, queueColumns()...)
	if page.Limit > 0 && len(all) > page.Limit {
		all = all[:page.Limit]
		list.CutAfter(all[page.Limit-1].cursor)
	}
	screen := a.Screen()
	for _, q := range all {
		if err := list.Add(q, queueRow(screen, q)...); err != nil {
			return err
		}
	}
	return list.End()
}
