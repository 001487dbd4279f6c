package dashboard

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/fan"
)

// searchPage goes to what has the name: a topic, a schedule, a gate, a queue, or a
// timer as "topic id". If several have it, it lists them.
func (d *Dashboard) searchPage(ctx context.Context, r *request) (page, error) {
	text := strings.TrimSpace(r.get("q"))
	data := searchData{Text: text}
	if text != "" {
		data.Found = d.find(ctx, text, &data)
	}
	if len(data.Found) == 1 && data.Found[0].Exact {
		r.w.Header().Set("Location", data.Found[0].Href)
		return page{template: "search", title: "Search", status: 303, data: data}, nil
	}
	return page{template: "search", title: "Search", data: data}, nil
}

type searchData struct {
	Text     string
	Found    []found
	Topics   int   // that exist
	Searched int   // in which a timer with this id was looked for
	Missed   error // why something may be missing; nil: nothing is
}

// miss notes an error other than that there is no such thing.
func (s *searchData) miss(err error) {
	if err != nil && !errors.Is(err, wakebell.ErrNotFound) && s.Missed == nil {
		s.Missed = err
	}
}

type found struct {
	Kind, Name, Href string
	Exact            bool
}

const (
	maxFound = 50
	// maxLookups and lookupTime bound the topics in which a timer is looked for by its id
	// alone: the page says in how many it was.
	maxLookups = 5000
	lookupTime = 3 * time.Second
)

func (d *Dashboard) find(ctx context.Context, text string, data *searchData) (all []found) {
	known, err := d.readKnown(ctx) // without them the other kinds are found
	names := known.names
	data.miss(cmp.Or(err, known.lost))
	for _, name := range names {
		if strings.Contains(name, text) && len(all) < maxFound {
			all = append(all, found{"topic", name, d.link("topic", "name", name), name == text})
		}
	}
	data.Topics = len(names)
	with := d.lookUp(ctx, names[:min(len(names), maxLookups)], text, data)
	for _, topic := range with[:min(len(with), max(0, maxFound-len(all)))] {
		all = append(all, found{"timer of " + topic, text, d.link("timer", "topic", topic, "id", text), true})
	}
	if topic, id, ok := strings.Cut(text, " "); ok {
		all = d.findTimer(ctx, all, topic, strings.TrimSpace(id), data)
	}
	if d.op.Schedules != nil {
		_, err := d.op.Schedules.Get(ctx, text)
		if data.miss(err); err == nil {
			all = append(all, found{"recurring schedule", text, d.link("schedule", "name", text), true})
		}
	}
	if d.op.Gates != nil {
		g, err := d.op.Gates.Show(ctx, text)
		if data.miss(err); err == nil && g.LastFence > 0 {
			all = append(all, found{"gate", text, d.link("gate", "name", text), true})
		}
	}
	if d.op.Queues != nil {
		s, err := d.op.Queues.Stats(ctx, d.queueKeys(text))
		if data.miss(err); err == nil && s.Pending+s.Processing+s.Completed+s.Failed+s.Dead > 0 {
			all = append(all, found{"queue", text, d.link("queue", "name", text), true})
		}
	}
	return all
}

// lookUp returns the topics that have a timer with an id, and notes in how many it looked.
func (d *Dashboard) lookUp(ctx context.Context, names []string, id string, data *searchData) (with []string) {
	inTime, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	errs := make([]error, len(names))
	called, err := fan.Out(inTime, len(names), func(i int) {
		_, _, _, errs[i] = d.readTimer(inTime, names[i], id)
	})
	data.miss(err)
	for i, name := range names[:called] {
		switch err := errs[i]; {
		case err == nil:
			with = append(with, name)
		case errors.Is(err, wakebell.ErrNotFound):
		case inTime.Err() != nil: // it was not looked for there in time
			called--
		default:
			called--
			data.miss(err)
		}
	}
	data.Searched = called
	return with
}

func (d *Dashboard) findTimer(ctx context.Context, all []found, topic, id string, data *searchData) []found {
	if topic == "" || id == "" || len(all) >= maxFound {
		return all
	}
	if _, _, _, err := d.readTimer(ctx, topic, id); err != nil {
		data.miss(err)
		return all
	}
	return append(all, found{"timer of " + topic, id, d.link("timer", "topic", topic, "id", id), true})
}
