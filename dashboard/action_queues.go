package dashboard

import (
	"context"
	"fmt"
	"net/url"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/jobs"
	"github.com/wakebell/wakebell/dashboard/internal/show"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (d *Dashboard) queueActions() map[string]action {
	return map[string]action{
		"publish":             {"queues", d.askPublish, d.doPublish},
		"purge":               {"queues", d.askPurge, d.doPurge},
		"purge-kept":          {"queues", d.askPurgeKept, d.doPurgeKept},
		"queue-redrive":       {"queues", d.askQueueRedrive, d.doQueueRedrive},
		"queue-redrive-one":   {"queues", d.aboutLetter("Redrive", "It becomes a message again, with a new id.", false), d.doRedriveOne},
		"queue-delete-letter": {"queues", d.aboutLetter("Delete", "This deletes it, for good.", true), d.doDeleteLetter},
	}
}

func (d *Dashboard) queueLink(r *request) string {
	return d.link("queue", "name", r.get("name"), "show", r.get("show"))
}

func (d *Dashboard) aboutQueue(ctx context.Context, r *request) (wakebelltype.QueueKeys, wakebelltype.QueueStats, error) {
	name, err := r.required("name")
	if err != nil {
		return wakebelltype.QueueKeys{}, wakebelltype.QueueStats{}, err
	}
	keys := d.queueKeys(name)
	stats, err := d.op.Queues.Stats(ctx, keys)
	return keys, stats, err
}

func (d *Dashboard) askPublish(ctx context.Context, r *request) (question, error) {
	keys, stats, err := d.aboutQueue(ctx, r)
	return question{
		Title: "Publish to " + show.Short(64, keys.Name), Button: "Publish", Back: d.queueLink(r),
		Text: []string{"This publishes 1 message, behind " + show.Things(stats.Pending, "message") + " that wait."},
		Fields: []field{
			{Name: "body", Label: "Body", Kind: "area"},
			{Name: "encoding", Label: "The body is given as", Kind: "select", Options: []string{asText, asHex}, Value: asText},
			{Name: "key", Label: "Deduplication key", Hint: "Empty: none. A message with the same key within an hour is suppressed."},
		},
	}, err
}

func (d *Dashboard) doPublish(ctx context.Context, r *request, form url.Values) (result, error) {
	body, err := bodyOf(form)
	if err != nil {
		return result{}, err
	}
	keys := d.queueKeys(r.get("name"))
	published, err := d.op.Queues.Publish(ctx, queue.Draft{
		Queue: queue.Settings{Keys: keys}, Payload: body, Key: form.Get("key"),
	})
	if err != nil {
		return result{}, err
	}
	text := "The message is published as " + published[0].ID + "."
	if published[0].Fresh {
		text += d.record(ctx, r, wakebelltype.AuditQueuePublish, keys.Name, 1, idText(published[0].ID), nil)
	} else {
		text = "Nothing was published: an earlier message has the same deduplication key."
	}
	return result{text: text, to: d.link("queue", "name", keys.Name)}, nil
}

func (d *Dashboard) askPurge(ctx context.Context, r *request) (question, error) {
	keys, stats, err := d.aboutQueue(ctx, r)
	return question{
		Title: "Purge " + show.Short(64, keys.Name), Button: "Purge", Danger: true, Back: d.queueLink(r),
		Text: []string{fmt.Sprintf("This deletes %s that wait, for good. %s in flight stay, unless you choose so.",
			show.Things(stats.Pending, "message"), show.Count(stats.Processing))},
		Fields: []field{
			{Name: "running", Label: "Delete the messages in flight too; their handlers lose their leases", Kind: "check"},
			{Name: "confirm", Label: "Name of the queue", Hint: "Type the name to confirm.", Required: true},
		},
	}, err
}

func (d *Dashboard) doPurge(ctx context.Context, r *request, form url.Values) (result, error) {
	keys, stats, err := d.aboutQueue(ctx, r)
	if err == nil {
		err = confirmed(form, keys.Name)
	}
	if err != nil {
		return result{}, err
	}
	running := form.Get("running") != ""
	job, err := d.jobs.Start(ctx, "Purge queue "+keys.Name, string(r.who), stats.Pending, func(ctx context.Context, j *jobs.Job) (string, error) {
		n, err := d.op.Queues.Purge(ctx, keys, running)
		j.Add(n)
		return "Deleted " + show.Things(n, "message") + ".", err
	})
	return result{job: job, to: d.queueLink(r)}, err
}

func (d *Dashboard) askPurgeKept(ctx context.Context, r *request) (question, error) {
	keys, stats, err := d.aboutQueue(ctx, r)
	return question{
		Title: "Delete kept payloads of " + show.Short(64, keys.Name), Button: "Delete", Danger: true, Back: d.queueLink(r),
		Text: []string{fmt.Sprintf("This deletes the payloads that are kept of %s completed and %s failed messages.",
			show.Count(stats.Completed), show.Count(stats.Failed))},
	}, err
}

func (d *Dashboard) doPurgeKept(ctx context.Context, r *request, _ url.Values) (result, error) {
	n, err := d.op.Queues.PurgeKept(ctx, d.queueKeys(r.get("name")))
	return result{text: "Deleted " + show.Things(n, "payload") + ".", to: d.queueLink(r)}, err
}

func (d *Dashboard) askQueueRedrive(ctx context.Context, r *request) (question, error) {
	keys, stats, err := d.aboutQueue(ctx, r)
	return question{
		Title: "Redrive dead letters of " + show.Short(64, keys.Name), Button: "Redrive", Back: d.queueLink(r),
		Text: []string{"All " + show.Things(stats.Dead, "dead letter") + " of the queue become messages again, the oldest first, without deduplication keys."},
	}, err
}

func (d *Dashboard) doQueueRedrive(ctx context.Context, r *request, _ url.Values) (result, error) {
	keys, stats, err := d.aboutQueue(ctx, r)
	if err != nil {
		return result{}, err
	}
	job, err := d.jobs.Start(ctx, "Redrive dead letters of queue "+keys.Name, string(r.who), stats.Dead, func(ctx context.Context, j *jobs.Job) (string, error) {
		n, err := queue.Redrive(ctx, counted{d.op.Queues, j}, keys, queue.RedriveOptions{})
		return "Redrove " + show.Things(n, "dead letter") + ".", err
	})
	return result{job: job, to: d.queueLink(r)}, err
}

// counted counts the dead letters of a redrive for its job.
type counted struct {
	queue.Operator
	job *jobs.Job
}

func (c counted) RedriveDeadLetter(ctx context.Context, name wakebelltype.QueueKeys, l wakebelltype.QueueDeadLetter, o queue.RedriveOptions) (wakebelltype.QueueRedriveOutcome, string, error) {
	outcome, id, err := c.Operator.RedriveDeadLetter(ctx, name, l, o)
	c.job.Add(1)
	return outcome, id, err
}

func (d *Dashboard) aboutLetter(verb, effect string, danger bool) func(context.Context, *request) (question, error) {
	return func(ctx context.Context, r *request) (question, error) {
		l, err := d.op.Queues.DeadLetter(ctx, d.queueKeys(r.get("name")), r.get("entry"))
		return question{
			Title: verb + " a dead letter of " + show.Short(64, r.get("name")), Button: verb, Danger: danger, Back: d.queueLink(r),
			Text: []string{"1 dead letter, of message " + show.Short(64, l.ID) + ".", effect},
		}, err
	}
}

func (d *Dashboard) doRedriveOne(ctx context.Context, r *request, _ url.Values) (result, error) {
	keys := d.queueKeys(r.get("name"))
	l, err := d.op.Queues.DeadLetter(ctx, keys, r.get("entry"))
	if err != nil {
		return result{}, err
	}
	outcome, id, err := d.op.Queues.RedriveDeadLetter(ctx, keys, l, queue.RedriveOptions{})
	text := "The dead letter is " + outcome.String() + "."
	if outcome == wakebelltype.QueueRedriveSucceeded {
		text = "The dead letter is message " + id + " now."
	}
	return result{text: text, to: d.queueLink(r)}, err
}

func (d *Dashboard) doDeleteLetter(ctx context.Context, r *request, _ url.Values) (result, error) {
	keys := d.queueKeys(r.get("name"))
	l, err := d.op.Queues.DeadLetter(ctx, keys, r.get("entry"))
	if err != nil {
		return result{}, err
	}
	n, err := d.op.Queues.DeleteDeadLetters(ctx, keys, l)
	if err == nil && n == 0 {
		err = wakebell.ErrNotFound
	}
	return result{text: "The dead letter is deleted.", to: d.queueLink(r)}, err
}
