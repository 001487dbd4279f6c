package faults

import (
	"context"
	"math/rand/v2"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
)

// schedule is a client in a process of its own, which can be suspended. It schedules the
// usual load, with handlers that continue when their lease is lost, until ctx ends.
func (c NodeConfig) schedule(ctx context.Context, n *node) error {
	rdb := c.client()
	defer func() { _ = rdb.Close() }()
	conn, err := connection.New(rdb, connection.Config{Logger: quiet})
	if err != nil {
		return err
	}
	client, err := wakebell.NewClient(conn)
	if err != nil {
		return err
	}
	go n.watchClock(ctx)
	n.report(Line{Event: EventReady})
	p := usualPace()
	p.work, p.batch = heldWork, 6
	s := &scheduler{
		pace: p, calls: n, name: c.Client, client: client,
		rng: rand.New(rand.NewPCG(c.Seed, 0)), // the harness repeats it
	}
	s.run(ctx)
	n.report(Line{Event: EventEnded})
	return nil
}

// RecordCall prints a call.
func (n *node) RecordCall(id string, c Call) {
	line := Line{Event: EventCall, ID: id, Call: &c}
	if c.Err != nil {
		line.Error = c.Err.Error()
	}
	n.report(line)
}
