package dashboard

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/fan"
	"github.com/wakebell/wakebell/dashboard/internal/show"
	"github.com/wakebell/wakebell/internal/bodytext"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	maxQueues    = 200 // queues of the page of queues, and of the dead letters on the overview
	messagesPage = 50
	// messageShown is how many bytes of each body a page of messages shows.
	messageShown = bodytext.MaxShown / 4
)

// queueKeys returns the keys of a queue by its name: those of the configuration, those that
// Redis lists, or the default ones.
func (d *Dashboard) queueKeys(name string) wakebelltype.QueueKeys {
	for _, keys := range d.cfg.QueueNames {
		if keys.Name == name {
			return keys
		}
	}
	if keys, ok := d.listed.Load(name); ok {
		return keys.(wakebelltype.QueueKeys)
	}
	return wakebelltype.QueueKeys{Name: name}
}

type queueRow struct {
	Name  string
	Stats wakebelltype.QueueStats
	Err   error
}

type queuesData struct {
	Rows   []queueRow
	Cut    bool
	Listed error // why the list of queues cannot be read
}

// queueRows returns the queues of the configuration and those that Redis lists, by name, at
// most maxQueues. The error is that of the list; the queues of the configuration are there.
func (d *Dashboard) queueRows(ctx context.Context) (rows []queueRow, err error) {
	if d.op.Queues == nil {
		return nil, nil
	}
	rows, err = d.queues.Get(ctx, "", func(ctx context.Context) ([]queueRow, error) {
		names := map[string]bool{}
		for _, keys := range d.cfg.QueueNames {
			names[keys.Name] = true
		}
		var lost error
		for q, err := range d.op.Queues.List(ctx, wakebelltype.Page{Limit: maxQueues}) {
			if lost = err; err == nil {
				names[q.Keys.Name] = true
				d.listed.Store(q.Keys.Name, q.Keys)
			}
		}
		rows := make([]queueRow, min(len(names), maxQueues))
		sorted := slices.Sorted(maps.Keys(names))
		_, err := fan.Out(ctx, len(rows), func(i int) {
			stats, err := d.op.Queues.Stats(ctx, d.queueKeys(sorted[i]))
			rows[i] = queueRow{sorted[i], stats, err}
		})
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return rows, errors.Join(err, lost)
	})
	return rows, err
}

func (d *Dashboard) queuesPage(ctx context.Context, r *request) (page, error) {
	rows, err := d.queueRows(ctx)
	if err != nil && len(rows) == 0 && unanswered(err) {
		return page{}, err
	}
	data := queuesData{rows, len(rows) == maxQueues, err}
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
	_, _ = d.queueRows(ctx) // the keys; without the right to list queues, these are the default ones
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
