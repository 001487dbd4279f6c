package wakebell_test

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

// A topic moves to a Cluster while nodes of both handle it.
func ExampleClient_MoveTopic() {
	move := func(ctx context.Context, from *wakebell.Client) error {
		cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"a:7000", "b:7000"}})
		defer func() { _ = cluster.Close() }()
		to, err := wakebell.NewClient(cluster, wakebell.ClientConfig{})
		if err != nil {
			return err
		}
		for progress, err := range from.MoveTopic(ctx, "invoices", to, wakebelltype.MoveOptions{}) {
			if err != nil {
				return err // another call continues
			}
			fmt.Println(progress.Moved, "moved,", progress.Left, "left")
		}
		return nil
	}
	_ = move
}

// The target of a move is lost, so what was on its way is put back.
func ExampleClient_AbortMove() {
	abort := func(ctx context.Context, client *wakebell.Client) error {
		back, err := client.AbortMove(ctx, "invoices")
		fmt.Println(back, "put back")
		return err
	}
	_ = abort
}
