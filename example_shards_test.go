package wakebell_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/wakebell/wakebell"
)

// The topic is spread over 16 shards, which a Redis Cluster distributes over its servers.
// Clients need no option: they read the number of shards from Redis.
func ExampleShards() {
	type click struct{ URL string }
	clicks := wakebell.NewTopic[click]("clicks")

	h := wakebell.Handle(clicks, func(ctx context.Context, t wakebell.Timer[click]) error {
		fmt.Println(t.Body.URL)
		return nil
	}, wakebell.Shards(16), wakebell.MaxConcurrent(160))

	show := func(ctx context.Context, client *wakebell.Client) error {
		layout, err := client.Shards(ctx, clicks.Name())
		fmt.Println(layout.Shards, "shards")
		return err
	}
	_, _ = h, show
}

// A topic with timers gets more shards while it is used.
func ExampleClient_Reshard() {
	reshard := func(ctx context.Context, client *wakebell.Client) error {
		for progress, err := range client.Reshard(ctx, "clicks", 16) {
			if err != nil {
				return err
			}
			fmt.Println(progress.Moved, "moved,", progress.Left, "left")
		}
		return nil
	}
	_ = reshard
}

// A client divides a topic that has no timers yet.
func ExampleClient_Divide() {
	divide := func(ctx context.Context, client *wakebell.Client) error {
		layout, err := client.Divide(ctx, "clicks", 16)
		if errors.Is(err, wakebell.ErrInvalid) {
			fmt.Println("it keeps its", layout.Shards, "shards:", err)
		}
		return err
	}
	_ = divide
}
