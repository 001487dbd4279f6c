// Saga books a trip: flight, hotel and car at the same time, as the parts of a join. Its timer
// is due when all three have ended, or at its instant, the time-out. If one of them failed or
// is late, it has the others undone.
//
// A booking that is late may have been made, so undoing one that was not made does nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Booking is a part of a trip.
type Booking struct{ Trip, What string }

// The topics: bookings, the ends of trips, and the compensation.
var (
	Bookings = wakebell.NewTopic[Booking]("trips.book")
	Trips    = wakebell.NewTopic[string]("trips.finish")
	Undos    = wakebell.NewTopic[Booking]("trips.undo")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	rdb, done := tryout.Redis() // yours: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer done()
	if err := run(ctx, rdb, log.New(os.Stdout, "", 0)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, rdb *redis.Client, out *log.Logger) error {
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	client, err := wakebell.NewClient(conn)
	if err != nil {
		return err
	}
	a := agency{client, out, make(chan struct{}, 10)}
	sys, err := wakebell.New(nil, conn, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(Bookings, book), wakebell.Handle(Trips, a.finish), wakebell.Handle(Undos, a.undo),
	}})
	if err != nil {
		return err
	}
	if err := sys.Start(ctx); err != nil {
		return err
	}
	for _, trip := range []struct {
		to      string
		timeout time.Duration
		steps   int // that are waited for: the end of the trip, and what is undone
	}{{"rome", time.Hour, 1}, {"london", time.Hour, 3}, {"oslo", 500 * time.Millisecond, 4}} {
		if err := a.begin(ctx, trip.to, trip.timeout); err != nil {
			return errors.Join(err, sys.Stop())
		}
		for range trip.steps {
			select {
			case <-a.steps:
			case <-ctx.Done():
				return errors.Join(ctx.Err(), sys.Stop())
			}
		}
	}
	return sys.Stop()
}

// agency is what the handlers have.
type agency struct {
	client *wakebell.Client
	out    *log.Logger
	steps  chan struct{}
}

// begin schedules the parts of a trip, and its end in the same call.
func (a agency) begin(ctx context.Context, trip string, timeout time.Duration) error {
	var parts []wakebell.Draft
	for _, what := range []string{"flight", "hotel", "car"} {
		parts = append(parts, Bookings.Draft(Booking{trip, what}, wakebell.ID(trip+"/"+what)))
	}
	end := Trips.Draft(trip, wakebell.ID(trip), wakebell.In(timeout))
	_, err := a.client.Schedule(ctx, wakebell.Batch(parts...).Then(end)...)
	return err
}

// book calls the services, in place of which it knows the answers.
func book(ctx context.Context, t wakebell.Timer[Booking]) error {
	switch t.ID {
	case "london/car":
		return wakebell.Reject(errors.New("no car is left"))
	case "oslo/hotel": // the service does not answer, until finish cancels the booking
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// finish is called when all parts have ended, or at the time-out. It may be called again after
// a crash, and does the same then.
func (a agency) finish(ctx context.Context, t wakebell.Timer[string]) error {
	var faults, late []string
	var undo []wakebell.Draft
	for p, err := range t.Parts(ctx) {
		if err != nil {
			return err
		}
		trip, what, _ := strings.Cut(p.ID, "/")
		switch p.End {
		case wakebelltype.EndDone:
		case "":
			faults, late = append(faults, what+" is late"), append(late, p.ID)
		default:
			faults = append(faults, fmt.Sprintf("%s is %s: %s", what, p.End, p.Reason))
			continue
		}
		undo = append(undo, Undos.Draft(Booking{trip, what}, wakebell.ID(p.ID)))
	}
	if len(faults) == 0 {
		a.out.Printf("%s: booked", t.Body)
		a.steps <- struct{}{}
		return nil
	}
	if len(late) > 0 { // no handler begins them any more
		if _, err := a.client.Cancel(ctx, Bookings.Name(), late...); err != nil {
			return err
		}
	}
	// The compensation is timers of its own, with their own retries.
	if _, err := a.client.Schedule(ctx, undo...); err != nil {
		return err
	}
	a.out.Printf("%s: not booked, %s", t.Body, strings.Join(faults, ", "))
	a.steps <- struct{}{}
	return nil
}

func (a agency) undo(_ context.Context, t wakebell.Timer[Booking]) error {
	a.out.Printf("%s: %s undone", t.Body.Trip, t.Body.What)
	a.steps <- struct{}{}
	return nil
}
