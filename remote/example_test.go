package remote_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/remote"
)

func Example() {
	redis := embedded.Start()
	defer redis.Close()
	rdb := redis.Client()
	defer func() { _ = rdb.Close() }()
	// The node calls Serve before it starts.
	conn, err := connection.New(rdb, connection.Config{Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	sys, err := wakebell.New(actorSystem(), conn, wakebell.Config{})
	if err != nil {
		log.Fatal(err)
	}
	tokens := map[string]string{"a-token-of-sixteen-bytes": "billing"}
	server, err := remote.Serve(sys, remote.Config{Tokens: tokens})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := sys.Start(ctx); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = sys.Stop() }()

	// This is another process.
	c, err := remote.Dial(ctx, server.Address(), nil, remote.DialConfig{Config: remote.Config{Token: "a-token-of-sixteen-bytes"}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	bells := wakebell.NewTopic[string]("bells")
	keyed := remote.WithKey(ctx, "order-42") // sent again, it changes nothing
	if _, err := bells.Schedule(keyed, c, "ding", wakebell.ID("bell-42")); err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(ctx)
	err = c.Subscribe(ctx, remote.Subscription{Topic: bells.Name(), Name: "ringer", Credits: 10},
		func(_ context.Context, l *messages.Lease) error {
			body, err := bells.Read(l)
			fmt.Println(l.GetId(), body)
			stop()
			return err
		})
	fmt.Println(err)
	// Output:
	// bell-42 ding
	// <nil>
}

func ExampleClient_Gates() {
	served(func(ctx context.Context, c *remote.Client) {
		err := c.Gates().With(ctx, "accounts", func(ctx context.Context, fence uint64) error {
			fmt.Println("alone:", fence > 0)
			return ctx.Err() // the turn was lost
		})
		fmt.Println(err)
	})
	// Output:
	// alone: true
	// <nil>
}

func ExampleClient_Schedules() {
	served(func(ctx context.Context, c *remote.Client) {
		nightly := wakebell.NewTopic[string]("bells").Recurring("nightly", recurring.Rule{Cron: "0 3 * * *"}, "ding")
		if err := c.Schedules().Put(ctx, nightly); err != nil {
			log.Fatal(err)
		}
		state, err := c.Schedules().Get(ctx, "nightly")
		fmt.Println(state.RuleText, err)
	})
	// Output: cron 0 3 * * * <nil>
}

func ExampleQueues_Publish() {
	mail := queue.New[string]("mail")
	served(func(ctx context.Context, c *remote.Client) {
		if _, err := mail.Publish(ctx, c.Queues(), "welcome"); err != nil {
			log.Fatal(err)
		}
		ctx, stop := context.WithCancel(ctx)
		err := c.Subscribe(ctx, remote.Subscription{Queue: mail.Keys(), Name: "postman"},
			func(_ context.Context, l *messages.Lease) error {
				body, err := mail.Read(l)
				fmt.Println(body)
				stop()
				return err
			})
		fmt.Println(err)
	})
	// Output:
	// welcome
	// <nil>
}

// Operators use the same calls with a Client on Redis and over the network.
func ExampleQueues_Stats() {
	mail := queue.New[string]("mail")
	served(func(ctx context.Context, c *remote.Client) {
		if _, err := mail.Publish(ctx, c.Queues(), "welcome"); err != nil {
			log.Fatal(err)
		}
		st, err := c.Queues().Stats(ctx, mail.Keys())
		fmt.Println(st.Pending, err)
		fmt.Println(c.Queues().Purge(ctx, mail.Keys(), false))
	})
	// Output:
	// 1 <nil>
	// 1 <nil>
}

func ExampleGates_Show() {
	served(func(ctx context.Context, c *remote.Client) {
		err := c.Gates().With(ctx, "accounts", func(ctx context.Context, fence uint64) error {
			info, err := c.Gates().Show(ctx, "accounts")
			fmt.Println("it is us:", info.Holder.Fence == fence)
			return err
		})
		fmt.Println(err)
	})
	// Output:
	// it is us: true
	// <nil>
}

// served calls fn with a client of a node on an embedded Redis.
func served(fn func(ctx context.Context, c *remote.Client)) {
	redis := embedded.Start()
	defer redis.Close()
	rdb := redis.Client()
	defer func() { _ = rdb.Close() }()
	conn, err := connection.New(rdb, connection.Config{Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	sys, err := wakebell.New(actorSystem(), conn, wakebell.Config{})
	if err != nil {
		log.Fatal(err)
	}
	server, err := remote.Serve(sys, remote.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := sys.Start(ctx); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = sys.Stop() }()
	c, err := remote.Dial(ctx, server.Address(), nil, remote.DialConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fn(ctx, c)
}
