package redistest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// form makes masters of a Cluster, each with an equal part of the slots, and waits until
// each knows all of them.
func form(ctx context.Context, members []member) (masters Masters, err error) {
	n := len(members)
	for i, m := range members {
		masters = append(masters, m.Server)
		low, high := i*clusterSlots/n, (i+1)*clusterSlots/n-1
		err := m.do(ctx, "CLUSTER", "ADDSLOTSRANGE", low, high)
		if err == nil {
			err = m.do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		}
		if err == nil && i > 0 {
			err = members[0].meet(ctx, m)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, m := range masters {
		if err := m.awaitCluster(ctx, n, "cluster_known_nodes:"+strconv.Itoa(n)); err != nil {
			return nil, err
		}
	}
	return masters, nil
}

// meet connects a member to another one.
func (m member) meet(ctx context.Context, other member) error {
	return m.do(ctx, "CLUSTER", "MEET", "127.0.0.1", other.port, other.bus)
}

// do sends a command.
func (s *Server) do(ctx context.Context, command ...any) error {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ReadTimeout: answerTimeout})
	defer func() { _ = rdb.Close() }()
	if err := rdb.Do(ctx, command...).Err(); err != nil {
		return fmt.Errorf("%v on %s: %w", command, s.Addr, err)
	}
	return nil
}

// awaitCluster waits until a server knows so many masters, which have all slots, and its
// CLUSTER INFO contains the wanted texts.
func (s *Server) awaitCluster(ctx context.Context, masters int, wanted ...string) error {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ReadTimeout: answerTimeout})
	defer func() { _ = rdb.Close() }()
	wanted = append(wanted, "cluster_state:ok", "cluster_size:"+strconv.Itoa(masters))
	return until("the cluster to form", func() error {
		info, err := rdb.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		for _, want := range wanted {
			if !strings.Contains(info, want) {
				return fmt.Errorf("%s: want %s in\n%s", s.Addr, want, info)
			}
		}
		return nil
	})
}

// until waits until condition returns nil, for at most formTimeout.
func until(what string, condition func() error) error {
	deadline := time.After(formTimeout)
	tick := time.NewTicker(formPoll)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		select {
		case <-deadline:
			return fmt.Errorf("waited %v for %s: %w", formTimeout, what, err)
		case <-tick.C:
		}
	}
}
