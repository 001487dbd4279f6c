package dashboard

import (
	"context"
	"fmt"
	"iter"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/show"
	"github.com/wakebell/wakebell/internal/bodytext"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	queuesPage   = 50 // queues of the page of queues
	messagesPage = 50
	// messageShown is how many bytes of each body a page of messages shows.
	messageShown = bodytext.MaxShown / 4
)

// queueKeys returns the keys of a queue by its name: those of the configuration, or
// the default ones.
func (d *Dashboard) queueKeys(name string) wakebelltype.QueueKeys {
	for _, keys := range d.cfg.QueueNames {
		if keys.Name == name {
			return keys
		}
	}
	return wakebelltype.QueueKeys{Name: name}
}

type queueRow struct {
	Name  string
	Stats wakebelltype.QueueStats
	Err   error
}

type queuesData struct {
	Rows []queueRow
	Cut  bool
}

func (d *Dashboard) queueRows(ctx context.Context) []queueRow {
	names := d.cfg.QueueNames[:min(len(d.cfg.QueueNames), queuesPage)]
	rows := make([]queueRow, len(names))
	for i, keys := range names {
		stats, err := d.op.Queues.Stats(ctx, keys)
		rows[i] = queueRow{keys.Name, stats, err}
	}
	return rows
}

func (d *Dashboard) queuesPage(ctx context.Context, r *request) (page, error) {
	data := queuesData{d.queueRows(ctx), len(d.cfg.QueueNames) > queuesPage}
	return page{template: "queues", title: "Queues", section: "queues", live: watching("queues"), data: data}, nil
}

type message struct {
	wakebelltype.QueueMessage
	Payload payload
}

type deadMessage struct {
	wakebelltype.QueueDeadLetter
	Payload payload
}

type queueData struct {
	Name     string
	Stats    wakebelltype.QueueStats
	Show     string // "pending", "running" or "dead"
	Messages []message
	Dead     []deadMessage
	Next     string
	First    string

	Chart   chartData
	PastErr error // why there is no chart
	Past    attemptsData
}

func (d *Dashboard) queuePage(ctx context.Context, r *request) (page, error) {
	name, err := r.required("name")
	if err != nil {
		return page{}, err
	}
	keys := d.queueKeys(name)
	data := queueData{Name: name, Show: r.get("show")}
	if data.Show != "running" && data.Show != "dead" {
		data.Show = "pending"
	}
	if data.Stats, err = d.op.Queues.Stats(ctx, keys); err != nil {
		return page{}, fmt.Errorf("queue %s: %w", show.Short(64, name), err)
	}
	after := r.get("after")
	p := wakebelltype.Page{After: after, Limit: messagesPage + 1}
	next := ""
	if data.Show == "dead" {
		data.Dead, next, err = taken(d.op.Queues.DeadLetters(ctx, keys, p), func(l wakebelltype.QueueDeadLetter) (deadMessage, string) {
			return deadMessage{l, d.messagePayload(ctx, name, l.ID, l.Payload)}, l.Cursor
		})
	} else {
		data.Messages, next, err = taken(d.op.Queues.Messages(ctx, keys, data.Show == "running", p), func(m wakebelltype.QueueMessage) (message, string) {
			return message{m, d.messagePayload(ctx, name, m.ID, m.Payload)}, m.Cursor
		})
	}
	if err != nil {
		return page{}, fmt.Errorf("queue %s: %w", show.Short(64, name), err)
	}
	if next != "" {
		data.Next = d.link("queue", "name", name, "show", data.Show, "after", next)
	}
	if after != "" {
		data.First = d.link("queue", "name", name, "show", data.Show)
	}
	past, err := d.queueThroughput(ctx, name, pastOf(r))
	data.Chart, data.PastErr = d.ranged(r, past, "queue", "name", name), err
	data.Chart.Queue = true
	data.Past.Attempts, data.Past.Err = newest(d.op.Queues.History(ctx, keys, wakebelltype.HistoryFilter{Last: attemptsShown}, wakebelltype.Page{}))
	return page{
		template: "queue", title: "Queue " + name, section: "queues", live: watching("queue", "name", name), data: data,
	}, nil
}

func (d *Dashboard) messagePayload(ctx context.Context, queue, id string, body []byte) payload {
	return d.newPayload(ctx, Payload{Queue: queue, ID: id, Content: wakebell.Content{Body: body}}, messageShown)
}

// taken converts a page of a listing, which was asked for one item more than fits,
// and returns the cursor of the next page.
func taken[T, R any](items iter.Seq2[T, error], convert func(T) (R, string)) (rows []R, next string, err error) {
	last := ""
	for item, err := range items {
		if err != nil {
			return nil, "", err
		}
		if len(rows) == messagesPage {
			return rows, last, nil
		}
		row, cursor := convert(item)
		rows, last = append(rows, row), cursor
	}
	return rows, "", nil
}
