// Subscriber handles the timers of a node in another process. It has no access to Redis,
// and the node has no handler for them:
//
//	wakebell --redis embedded node --listen 127.0.0.1:7070
//	go run ./examples/subscriber 127.0.0.1:7070
//	wakebell --remote 127.0.0.1:7070 schedule --topic bells --text ding
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// Bells is the topic.
var Bells = wakebell.NewTopic[string]("bells")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 2 {
		log.Fatal("usage: subscriber ADDRESS")
	}
	if err := run(ctx, os.Args[1], log.New(os.Stdout, "", 0)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, address string, out *log.Logger) error {
	node, err := remote.Dial(ctx, address, nil, remote.DialConfig{Config: remote.Config{Token: os.Getenv("WAKEBELL_TOKEN")}})
	if err != nil {
		return err
	}
	defer node.Close()
	ring := func(_ context.Context, l *messages.Lease) error {
		sound, err := Bells.Read(l)
		switch {
		case err != nil:
			return wakebell.Reject(err) // a retry cannot help
		case sound == "crack" && l.GetAttempt() == 1:
			out.Printf("%s cracks", l.GetId())
			return errors.New("cracked") // it is retried
		}
		out.Printf("%s: %s, attempt %d", l.GetId(), sound, l.GetAttempt())
		return nil
	}
	out.Print("waiting for bells")
	// A later subscription with the same name replaces this one. Subscriptions with
	// different names share the timers.
	return node.Subscribe(ctx, remote.Subscription{Topic: Bells.Name(), Name: "ringer-1", Credits: 10}, ring)
}
