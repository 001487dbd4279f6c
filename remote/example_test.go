package remote_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

func Example() {
	redis := embedded.Start()
	defer redis.Close()
	rdb := redis.Client()
	defer func() { _ = rdb.Close() }()
	// The node. It serves itself before it starts.
	sys, err := wakebell.New(actorSystem(), rdb, wakebell.Config{Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	tokens := map[string]string{"a-token-of-sixteen-bytes": "billing"}
	server, err := remote.Serve(sys, remote.Config{Tokens: tokens, Logger: quiet})
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

	// Another process.
	c, err := remote.Dial(ctx, server.Address(), remote.DialConfig{Config: remote.Config{Token: "a-token-of-sixteen-bytes"}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	bells := wakebell.NewTopic[string]("bells")
	keyed := remote.WithKey(ctx, "order-42") // sent again, it does nothing
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
