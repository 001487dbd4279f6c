package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Welcome is a message of the examples.
type Welcome struct{ User string }

// Welcomes is the queue of the examples: each user is welcomed once a day.
var Welcomes = queue.New[Welcome]("welcomes",
	queue.DeduplicateBy(func(w Welcome) string { return w.User }),
	queue.DeduplicationWindow(24*time.Hour),
	queue.PendingCap(10_000, queue.FullWaits),
	queue.FreeKeyOnFailure())

// connect calls use with a Client on a new Redis.
func connect(use func(context.Context, *queue.Client)) {
	server := embedded.Start()
	defer server.Close()
	rdb := server.Client()
	defer func() { check(rdb.Close()) }()
	conn, err := connection.New(rdb, connection.Config{})
	check(err)
	c, err := queue.NewClient(conn)
	check(err)
	use(context.Background(), c)
}

// rejected calls use after the messages of these users were dead-lettered.
func rejected(use func(context.Context, *queue.Client), users ...string) {
	server := embedded.Start()
	defer server.Close()
	quiet := slog.New(slog.DiscardHandler)
	died := make(chan struct{})
	reject := func(context.Context, wakebell.Timer[Welcome]) error {
		died <- struct{}{}
		return wakebell.Reject(errors.New("no such user"))
	}
	actors := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	conn, err := connection.New(server.Client(), connection.Config{Logger: quiet})
	check(err)
	sys, err := wakebell.New(actors, conn, wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.HandleQueue(Welcomes, reject, wakebell.MaxConcurrent(1))},
	})
	check(err)
	ctx := context.Background()
	check(sys.Start(ctx))
	for _, user := range users {
		_, err := Welcomes.Publish(ctx, sys.Client().Queues(), Welcome{user})
		check(err)
		<-died
	}
	check(sys.Remove(Welcomes.Name())) // outcomes of handlers are settled
	use(ctx, sys.Client().Queues())
	check(sys.Stop())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func ExamplePublisher() {
	// The interface accepts a Client of this process or one of package remote.
	welcome := func(ctx context.Context, p queue.Publisher, user string) error {
		_, err := Welcomes.Publish(ctx, p, Welcome{user})
		return err
	}
	connect(func(ctx context.Context, c *queue.Client) {
		check(welcome(ctx, c, "ann"))
		st, err := c.Stats(ctx, Welcomes.Keys())
		check(err)
		fmt.Println(st.Pending)
	})
	// Output: 1
}

func ExampleOperator() {
	// The interface accepts a Client of this process or one of package remote.
	waiting := func(ctx context.Context, of queue.Operator, name wakebelltype.QueueKeys) int64 {
		st, err := of.Stats(ctx, name)
		check(err)
		return st.Pending
	}
	connect(func(ctx context.Context, c *queue.Client) {
		_, err := Welcomes.PublishAll(ctx, c, Welcome{"ann"}, Welcome{"bob"})
		check(err)
		fmt.Println(waiting(ctx, c, Welcomes.Keys()))
	})
	// Output: 2
}

func ExampleClient_Remove() {
	// An empty queue leaves the list of queues; one in use stays.
	connect(func(ctx context.Context, c *queue.Client) {
		_, err := Welcomes.Publish(ctx, c, Welcome{"ann"})
		check(err)
		r, err := c.Remove(ctx, Welcomes.Keys())
		check(err)
		fmt.Println(r.Use)
		_, err = c.Purge(ctx, Welcomes.Keys(), false)
		check(err)
		r, err = c.Remove(ctx, Welcomes.Keys())
		check(err)
		fmt.Println(r.Existed, r.Use == "")
	})
	// Output:
	// key "welcomes::pending"
	// true true
}

func ExampleClient_Throughput() {
	connect(func(ctx context.Context, c *queue.Client) {
		_, err := Welcomes.PublishAll(ctx, c, Welcome{"ann"}, Welcome{"bob"}, Welcome{"ann"})
		check(err)
		found, err := c.Throughput(ctx, Welcomes.Keys(), 6*time.Hour)
		check(err)
		published := int64(0)
		for _, minute := range found.Points {
			published += minute.Scheduled
		}
		fmt.Println(len(found.Points), "minutes,", published, "published")
	})
	// Output: 360 minutes, 2 published
}

func ExampleClient_History() {
	// Handlers record attempts that failed; see wakebell.History.
	connect(func(ctx context.Context, c *queue.Client) {
		last := wakebelltype.HistoryFilter{Outcome: wakebelltype.EventDead, Last: 10}
		for a, err := range c.History(ctx, Welcomes.Keys(), last, wakebelltype.Page{}) {
			check(err)
			fmt.Println(a.ID, "failed", a.Attempt, "times:", a.Error)
		}
		fmt.Println("no further ones")
	})
	// Output: no further ones
}

func ExampleNew() {
	// These are the keys of a Python service with key_separator="/".
	q := queue.New[string]("mail", queue.KeySeparator("/"), queue.DeadLetterKey("mail/dead"))
	fmt.Println(q.Name(), q.Keys().Separator, q.Under("eu-").Name())
	// Output: mail / eu-mail
}

func ExampleQueue_Publish() {
	connect(func(ctx context.Context, c *queue.Client) {
		for range 2 {
			fresh, err := Welcomes.Publish(ctx, c, Welcome{"ann"})
			check(err)
			fmt.Println("fresh:", fresh)
		}
		fresh, err := Welcomes.Publish(ctx, c, Welcome{"ann"}, queue.DeduplicationKey("ann, again"))
		check(err)
		fmt.Println("with a key of its own:", fresh)
	})
	// Output:
	// fresh: true
	// fresh: false
	// with a key of its own: true
}

func ExampleQueue_PublishAll() {
	connect(func(ctx context.Context, c *queue.Client) {
		published, err := Welcomes.PublishAll(ctx, c, Welcome{"ann"}, Welcome{"bob"}, Welcome{"ann"})
		check(err)
		for _, p := range published {
			fmt.Println(len(p.ID), p.Fresh)
		}
	})
	// Output:
	// 32 true
	// 32 true
	// 32 false
}

func ExampleClient_Publish() {
	connect(func(ctx context.Context, c *queue.Client) {
		drafts := []queue.Draft{queue.New[string]("mail").Draft("hello")}
		for range 3 { // repeated, as after an error: it is published once
			published, err := c.Publish(ctx, drafts...)
			check(err)
			fmt.Println(published[0].Fresh)
		}
		st, err := c.Stats(ctx, wakebelltype.QueueKeys{Name: "mail"})
		check(err)
		fmt.Println(st.Pending, "waits")
	})
	// Output:
	// true
	// true
	// true
	// 1 waits
}

func ExampleClient_Messages() {
	connect(func(ctx context.Context, c *queue.Client) {
		_, err := Welcomes.PublishAll(ctx, c, Welcome{"ann"}, Welcome{"bob"})
		check(err)
		const running = false // only waiting messages
		for m, err := range c.Messages(ctx, Welcomes.Keys(), running, wakebelltype.Page{}) {
			check(err)
			fmt.Println(string(m.Payload), m.Deliveries)
		}
		n, err := c.Purge(ctx, Welcomes.Keys(), true) // including messages in flight
		check(err)
		fmt.Println("purged", n)
		kept, err := c.PurgeKept(ctx, Welcomes.Keys())
		check(err)
		left, err := queue.Drain(ctx, c, Welcomes.Keys())
		check(err)
		fmt.Println(kept, left.Pending)
	})
	// Output:
	// {"User":"ann"} 0
	// {"User":"bob"} 0
	// purged 2
	// 0 0
}

func ExampleClient_List() {
	connect(func(ctx context.Context, c *queue.Client) {
		_, err := Welcomes.Publish(ctx, c, Welcome{"ann"})
		check(err)
		for q, err := range c.List(ctx, wakebelltype.Page{}) {
			check(err)
			fmt.Println(q.Keys.Name)
		}
	})
	// Output: welcomes
}

func ExampleRedrive() {
	rejected(func(ctx context.Context, c *queue.Client) {
		var dead []wakebelltype.QueueDeadLetter
		for l, err := range c.DeadLetters(ctx, Welcomes.Keys(), wakebelltype.Page{}) {
			check(err)
			fmt.Println(string(l.Payload), l.Reason)
			dead = append(dead, l)
		}
		bob, err := c.DeadLetter(ctx, Welcomes.Keys(), dead[1].Entry)
		check(err)
		outcome, _, err := c.RedriveDeadLetter(ctx, Welcomes.Keys(), bob, Welcomes.RedriveOptions())
		check(err)
		fmt.Println("bob redriven:", outcome == wakebelltype.QueueRedriveSucceeded)
		n, err := c.DeleteDeadLetters(ctx, Welcomes.Keys(), dead[0])
		check(err)
		fmt.Println("deleted", n)
		redriven, err := queue.Redrive(ctx, c, Welcomes.Keys(), queue.RedriveOptions{}) // without keys
		check(err)
		fmt.Println("redriven", redriven)
	}, "ann", "bob", "cat")
	// Output:
	// {"User":"ann"} no such user
	// {"User":"bob"} no such user
	// {"User":"cat"} no such user
	// bob redriven: true
	// deleted 1
	// redriven 1
}

func ExampleQueue_Settings() {
	settings, err := Welcomes.Settings()
	check(err)
	fmt.Println(settings.Keys.Name, settings.DeduplicationWindow, settings.PendingCap, settings.WhenFull == queue.FullWaits)
	// Output: welcomes 24h0m0s 10000 true
}

// An actor that ForwardQueue delivers to reads the body of a lease.
func ExampleQueue_Read() {
	body, err := Welcomes.Read(&messages.Lease{Body: []byte(`{"User":"ann"}`)})
	check(err)
	fmt.Println(body.User)
	// Output: ann
}
