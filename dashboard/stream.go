package dashboard

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/wakebell/wakebell/dashboard/internal/live"
	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// streamLife bounds a stream; the browser connects again.
	streamLife = 10 * time.Minute
	// keepAlive is below the idle timeouts of common proxies. The request is authorized again
	// then: a right may be withdrawn while a page is open.
	keepAlive = 20 * time.Second
	// maxFeeds bounds the topics whose events one page reads.
	maxFeeds = 20
	// writeLimit bounds one write to a browser that does not read.
	writeLimit = 10 * time.Second
)

var errTooManyStreams = errors.New("too many pages follow changes; this one does not")

// watching returns the parameters of /live for a page; names may repeat.
func watching(kind string, params ...string) string {
	query := url.Values{"of": {kind}}
	for i := 0; i+1 < len(params); i += 2 {
		query.Add(params[i], params[i+1])
	}
	return query.Encode()
}

// stream sends an event to the browser when what its page shows has changed. The
// script of the page then reads the page again.
func (d *Dashboard) stream(r *request) {
	query := r.URL.Query()
	probe, feed := d.probe(query)
	if probe == nil || len(query["name"]) > topicsPage || len(feed) > maxFeeds {
		d.fail(r, http.StatusNotFound, errors.New("there is nothing of this kind to watch"))
		return
	}
	changed, stop, ok := d.hub.Watch(r.Context(), string(r.who), watched(query), probe)
	if !ok {
		d.fail(r, http.StatusServiceUnavailable, errTooManyStreams)
		return
	}
	defer stop()
	followed := map[string]func(){}
	defer func() {
		for _, leave := range followed {
			leave()
		}
	}()
	d.followAll(r, feed, followed)
	r.w.Header().Set("Content-Type", "text/event-stream")
	r.w.Header().Set("X-Accel-Buffering", "no") // of nginx
	out := http.NewResponseController(r.w)
	send := func(event string) bool {
		_ = out.SetWriteDeadline(time.Now().Add(writeLimit)) // not every server has deadlines
		_, err := io.WriteString(r.w, event)
		return err == nil && out.Flush() == nil
	}
	if !send("retry: 3000\nevent: watching\ndata:\n\n") {
		return
	}
	end, beat, pulsed := time.NewTimer(streamLife), time.NewTicker(keepAlive), time.NewTicker(pulseAge)
	defer end.Stop()
	defer beat.Stop()
	defer pulsed.Stop()
	known := d.pulse.State(r.Context(), pulseAge)
	for alive := send(outageEvent(known)); alive; {
		select {
		case <-pulsed.C:
			d.followAll(r, feed, followed)
			if now := d.pulse.State(r.Context(), pulseAge); now.Down != known.Down {
				known, alive = now, send(outageEvent(now))
			}
		case <-changed:
			alive = send("event: change\ndata:\n\n")
		case <-beat.C:
			again := *r
			alive = d.admit(&again) == nil && send(": alive\n\n")
		case <-end.C:
			return
		case <-d.hub.Done():
			return
		case <-r.Context().Done():
			return
		}
	}
}

// followAll follows the topics that are not followed yet. A topic that does not exist may
// come to exist; a name that a browser has made up must not cost a connection to Redis.
func (d *Dashboard) followAll(r *request, topics []string, followed map[string]func()) {
	if len(followed) == len(topics) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), pulseAge)
	defer cancel()
	all, err := d.readKnown(ctx)
	if err != nil {
		return // the stream reports an outage
	}
	for _, topic := range topics {
		if _, known := slices.BinarySearch(all.names, topic); !known || followed[topic] != nil {
			continue
		}
		if leave, ok := d.feeds.follow(r.Context(), string(r.who), topic); ok {
			followed[topic] = leave
		}
	}
}

// watched is the key of what a browser watches, without parameters that no probe has.
func watched(q url.Values) string {
	key := url.Values{}
	for _, name := range []string{"of", "name", "topic", "id", "after", "feed"} {
		if values, ok := q[name]; ok {
			key[name] = values
		}
	}
	return key.Encode()
}

// probe returns what tells a change of a page, and the topics whose events it shows;
// nil if there is no such kind. A probe reads what the page reads, through the same
// caches.
func (d *Dashboard) probe(q url.Values) (live.Probe, []string) {
	name, topic := q.Get("name"), q.Get("topic")
	keys := wakebelltype.QueueKeys{Name: name}
	switch kind := q.Get("of"); {
	case kind == "overview":
		return func(ctx context.Context) (string, error) {
			t, err := d.readTotals(ctx)
			if err != nil {
				return "", err
			}
			queues, _ := d.queueRows(ctx)
			text, err := mark([]any{t.Stats, t.Topics, t.Behind, t.Paused, t.Dead, t.Faults, t.Alone, queues}, nil)
			nodes, _ := mark(d.askNodes(ctx, t).Rows, nil)
			return fmt.Sprint(text, " ", nodes, " ", d.beats(ctx).Grade), err
		}, q["feed"]
	case kind == "topics" || kind == "topic" && name != "":
		return d.topicsProbe(q), q["feed"]
	case kind == "timer":
		return func(ctx context.Context) (string, error) {
			info, content, _, err := d.readTimer(ctx, topic, q.Get("id"))
			if err != nil {
				return err.Error(), nil
			}
			var join wakebelltype.Join
			_, joins := content.Headers.Get(wakebelltype.JoinHeader)
			if c, ok := d.joiner(); ok && joins {
				join, _ = c.Join(ctx, topic, q.Get("id")) // the page says why it cannot be read
			}
			return mark([]any{info, join}, nil)
		}, nil
	case kind == "redis": // for the banner of a page that follows nothing
		return func(context.Context) (string, error) { return "", nil }, nil
	case kind == "jobs":
		return func(context.Context) (string, error) { return mark(d.jobs.All(), nil) }, nil
	case kind == "nodes":
		return func(ctx context.Context) (string, error) {
			t, err := d.readTotals(ctx)
			if err != nil {
				return "", err
			}
			return mark(d.askNodes(ctx, t).Rows, nil)
		}, q["feed"]
	case kind == "queue" && d.op.Queues != nil:
		return func(ctx context.Context) (string, error) {
			s, err := d.op.Queues.Stats(ctx, d.queueKeys(keys.Name))
			s.Now = time.Time{}
			return mark(s, err)
		}, nil
	case kind == "queues" && d.op.Queues != nil:
		return func(ctx context.Context) (string, error) { return mark(d.queueRows(ctx)) }, nil
	case kind == "schedules" && d.op.Schedules != nil:
		return func(ctx context.Context) (string, error) {
			return markSchedules(d.listSchedules(ctx, q.Get("after")))
		}, nil
	case kind == "schedule" && d.op.Schedules != nil:
		return func(ctx context.Context) (string, error) {
			state, err := d.op.Schedules.Get(ctx, name)
			return markSchedules([]recurring.State{state}, err)
		}, nil
	case kind == "gates" && d.op.Gates != nil:
		return func(ctx context.Context) (string, error) { return mark(d.listGates(ctx, q.Get("after"))) }, nil
	case kind == "gate" && d.op.Gates != nil:
		return func(ctx context.Context) (string, error) {
			g, err := d.op.Gates.Show(ctx, name)
			g.Now = time.Time{}
			return mark(g, err)
		}, nil
	default:
		return nil, nil
	}
}

// topicsProbe watches the counts of the named topics, and the events of those that
// are followed.
func (d *Dashboard) topicsProbe(q url.Values) live.Probe {
	names := q["name"]
	return func(ctx context.Context) (string, error) {
		all, err := d.readTopics(ctx, names)
		var unattended []bool
		for i := range all {
			unattended = append(unattended, attended.Waits(all[i]) != "")
			all[i].Stats.Lag = 0 // it grows by itself
		}
		text, err := mark(all, err)
		text += fmt.Sprint(unattended)
		for _, topic := range q["feed"] {
			text += fmt.Sprint(" ", d.feeds.version(topic))
		}
		return text, err
	}
}

// mark returns a short text that differs for values that differ.
func mark[T any](value T, err error) (string, error) {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%+v", value) // a hash returns no error
	return fmt.Sprintf("%x", h.Sum64()), err
}
