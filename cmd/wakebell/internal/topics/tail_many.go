package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

// mostTails bounds the topics that one tail follows: each takes a subscription.
const mostTails = 50

// tailMany is tail for several topics at once.
type tailMany struct {
	app    *cli.App
	client wakebell.Operator
	names  []string
	lines  int

	shown   map[string]bool // entries of dead letters; nil: they are not printed yet
	waiting map[string]bool // topics that are not subscribed to yet
	held    []wakebelltype.Event
	faults  []error
}

// printTails shows the last dead letters of some topics, and follows their events.
func printTails(ctx context.Context, a *cli.App, c wakebell.Operator, names []string, f *tailFlags) error {
	if n := len(names) - mostTails; n > 0 {
		a.Notef("wakebell: the first %d topics are shown, and %d are not; --topic chooses\n", mostTails, n)
		names = names[:mostTails]
	}
	if len(names) == 0 {
		a.Notef("wakebell: there is no topic yet\n")
	}
	t := &tailMany{app: a, client: c, names: names, lines: f.lines}
	if !f.follow || len(names) == 0 {
		return t.printDead(ctx)
	}
	return t.follow(ctx)
}

// printDead prints the last dead letters of all topics together, the newest last.
func (t *tailMany) printDead(ctx context.Context) error {
	t.shown = map[string]bool{}
	if t.lines == 0 {
		return nil
	}
	var all []wakebell.DeadLetter
	for _, name := range t.names {
		some, err := t.client.LastDead(ctx, name, t.lines)
		if err != nil && ctx.Err() != nil {
			return err
		}
		if err != nil { // those of the others are worth showing
			t.app.Notef("wakebell: dead letters of %q: %s\n", name, output.Escape(output.Fault(err)))
		}
		all = append(all, some...)
	}
	slices.SortStableFunc(all, func(a, b wakebell.DeadLetter) int { return a.Died.Compare(b.Died) })
	for _, d := range all[max(0, len(all)-t.lines):] {
		t.shown[d.Entry] = true
		if err := t.print(deadEvent(d)); err != nil {
			return err
		}
	}
	return nil
}

func (t *tailMany) print(e wakebelltype.Event) error {
	if t.app.WantsJSON() {
		return printEvent(t.app, e)
	}
	return t.app.Printf("%s\n", eventText(e, e.Topic))
}

// tailed is what the tail of a topic yields.
type tailed struct {
	topic string
	event wakebelltype.Event
	err   error
}

// follow prints events until ctx ends, or all tails have failed.
func (t *tailMany) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	events := make(chan tailed)
	var tails sync.WaitGroup
	defer tails.Wait()
	defer cancel()
	t.waiting = map[string]bool{}
	for _, name := range t.names {
		t.waiting[name] = true
		tails.Go(func() {
			for e, err := range t.client.Tail(ctx, name) {
				select {
				case events <- tailed{name, e, err}:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for {
		select {
		case e := <-events:
			if err := t.take(ctx, e); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil // a signal
		}
	}
}

// take prints an event, or holds it until all topics are subscribed to and their dead letters
// were printed, so that none is missed in between.
func (t *tailMany) take(ctx context.Context, e tailed) error {
	switch {
	case ctx.Err() != nil:
		return nil
	case e.err != nil:
		t.faults = append(t.faults, fmt.Errorf("%q: %w", e.topic, e.err))
		if len(t.faults) == len(t.names) {
			return errors.Join(t.faults...)
		}
		t.app.Notef("wakebell: %s\n", output.Escape(output.Fault(t.faults[len(t.faults)-1])))
		delete(t.waiting, e.topic)
	case e.event.Kind == wakebelltype.EventAttached && t.waiting[e.topic]:
		delete(t.waiting, e.topic)
	case e.event.Kind == wakebelltype.EventAttached:
		if t.shown != nil {
			t.app.Notef("wakebell: the connection was lost; events of %s during the loss are not shown\n", output.Escape(e.topic))
		}
	case e.event.Kind != wakebelltype.EventState:
		t.held = append(t.held, e.event)
	}
	if len(t.waiting) > 0 {
		return nil
	}
	if t.shown == nil {
		if err := t.printDead(ctx); err != nil {
			return err
		}
	}
	for _, e := range t.held {
		if e.Kind == wakebelltype.EventDead && t.shown[e.Entry] {
			continue
		}
		if err := t.print(e); err != nil {
			return err
		}
	}
	t.held = t.held[:0]
	return nil
}
