package scripts

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/messages/exchange"
)

// A master of a Cluster that hangs, or that its network has cut off, refuses nothing. A
// call that it does not answer takes two read timeouts of the client, 10 s by default,
// although a replica may have taken over meanwhile; and the client, which asks any server
// for the masters, may wait as long for that. Therefore a call without an answer is sent
// to a replica as well. A replica that has not taken over refuses it with MOVED.

// askSuccessors makes a call on a Cluster. While it is not answered, the server that may
// have taken over from the master of key is asked in intervals of slowAnswer. The context
// of the calls without an answer ends, but they may still run later: the call must be
// repeatable, and not refer to anything that changes.
func askSuccessors[T any](ctx context.Context, cluster *redis.ClusterClient, key string, call func(context.Context, redis.UniversalClient) (T, error)) (reply T, err error) {
	type answer struct {
		reply T
		err   error
	}
	master, err := cluster.MasterForKey(ctx, key)
	if err != nil {
		return reply, err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	answered := make(chan answer, 1)
	go func() {
		var a answer
		a.err = usercode.Called("a call of Redis", func() (err error) {
			a.reply, err = call(ctx, cluster)
			return err
		})
		answered <- a
	}()
	succeeded := make(chan answer, 1)
	asking := false
	tick := time.NewTicker(slowAnswer)
	defer tick.Stop()
	for {
		select {
		case a := <-answered:
			return a.reply, a.err
		case a := <-succeeded:
			if asking = false; !refused(ctx, a.err) {
				cluster.ReloadState(ctx)
				return a.reply, a.err
			}
		case <-tick.C:
			cluster.ReloadState(ctx)
			if asking {
				continue
			}
			asking = true
			go func() { // also to find the successor may take long
				var a answer
				a.err = usercode.Called("a call of Redis", func() (err error) {
					successor := successorOf(ctx, cluster, key, master)
					if successor == nil {
						return errNotSent
					}
					a.reply, err = call(ctx, successor)
					return err
				})
				succeeded <- a
			}()
		}
	}
}

// successorOf returns the server that may have taken over from the master of a key: the
// present master if it is another one by now, and else a replica. It returns nil if there
// is none. A client that reads from replicas has none either: they would answer.
func successorOf(ctx context.Context, cluster *redis.ClusterClient, key string, master *redis.Client) *redis.Client {
	now, err := cluster.MasterForKey(ctx, key)
	switch {
	case err != nil, cluster.Options().ReadOnly: // go-redis sets it for all its ways of reading from replicas
		return nil
	case now != master: // the replica would be the one that does not answer
		return now
	}
	replica, err := cluster.SlaveForKey(ctx, key)
	if err != nil || replica == master {
		return nil
	}
	return replica
}

// refused reports whether a server did not run a script, because it is a replica or
// cannot serve.
func refused(ctx context.Context, err error) bool {
	return elsewhere(err) || errors.Is(Wrap(ctx, nil, err), exchange.ErrUnavailable) || ctx.Err() != nil
}

// elsewhere reports whether a server refused a command because another one has the slot.
func elsewhere(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK")
}

// values returns arguments without the pointers among them.
func values(args []any) []any {
	copies := slices.Clone(args)
	for i, arg := range copies {
		switch v := arg.(type) {
		case *string:
			copies[i] = *v
		case []byte:
			copies[i] = slices.Clone(v)
		}
	}
	return copies
}
