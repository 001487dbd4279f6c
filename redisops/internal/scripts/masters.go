package scripts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
)

// findMasters makes the client of a Cluster look up in the background which servers
// are masters. The client itself does so every minute, and when a server redirects
// it. A master that was killed does not redirect, and the client does not ask its
// successor. For other clients findMasters does nothing.
func (s Runner) findMasters(ctx context.Context) {
	if cluster, ok := s.RDB.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}

// watched makes a call to a Cluster, and looks up the masters if it is slow, or if the server
// was unavailable.
func (s Runner) watched(ctx context.Context, call func() error) error {
	slow := time.AfterFunc(slowAnswer, func() { s.findMasters(ctx) })
	err := call()
	slow.Stop()
	if errors.Is(err, exchange.ErrUnavailable) {
		s.findMasters(ctx)
	}
	return err
}

// Moved looks up the masters of a Cluster if err reports that a slot has moved, and
// makes the error one that is retried.
func (s Runner) Moved(ctx context.Context, err error) error {
	if !s.OnCluster() || !elsewhere(err) {
		return err
	}
	s.findMasters(ctx)
	return fmt.Errorf("%w: %w", exchange.ErrUnavailable, err)
}

// slowAnswer is how long a command of a Cluster may take before the masters are
// looked up again.
const slowAnswer = 250 * time.Millisecond

// Nodes returns the servers that together have all keys, in a stable order.
func (s Runner) Nodes(ctx context.Context) ([]redis.Cmdable, error) {
	cluster, ok := s.RDB.(*redis.ClusterClient)
	if !ok {
		return []redis.Cmdable{s.RDB}, nil
	}
	var mu sync.Mutex
	var masters []*redis.Client
	err := cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		masters = append(masters, c)
		return nil
	})
	slices.SortFunc(masters, func(a, b *redis.Client) int {
		return strings.Compare(a.Options().Addr, b.Options().Addr)
	})
	nodes := make([]redis.Cmdable, len(masters))
	for i, c := range masters {
		nodes[i] = c
	}
	return nodes, err
}

// OnCluster reports whether the client is one of a Cluster.
func (s Runner) OnCluster() bool {
	_, is := s.RDB.(*redis.ClusterClient)
	return is
}

// Clustered reports whether the server is part of a Cluster. It asks INFO if the
// type of the client does not show it; without the right to INFO, a plain client
// counts as one of a plain server.
func (s Runner) Clustered(ctx context.Context) bool {
	if s.OnCluster() {
		return true
	}
	info, err := s.RDB.Info(ctx, "cluster").Result()
	return err == nil && strings.Contains(info, "cluster_enabled:1")
}
