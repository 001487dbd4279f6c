package redistest

import (
	"context"
	"errors"
	"os"
)

// Launch starts a redis-server for a program that is not a test, until Close. It
// stores nothing on disk unless args say otherwise, as in [Start].
func Launch(args ...string) (*Server, error) { return startTemp(args...) }

// Close stops a server of Launch and removes its directory.
func (s *Server) Close() error {
	s.Stop()
	return os.RemoveAll(s.dir)
}

// LaunchCluster is [Launch] for a Redis Cluster of so many masters, each with an equal
// part of the slots.
func LaunchCluster(ctx context.Context, masters int) (Masters, error) {
	var members []member
	end := func(err error) error {
		for _, m := range members {
			err = errors.Join(err, m.Close())
		}
		return err
	}
	for range masters {
		m, err := tempMember()
		if err != nil {
			return nil, end(err)
		}
		members = append(members, m)
	}
	all, err := form(ctx, members)
	if err != nil {
		return nil, end(err)
	}
	return all, nil
}

// Close stops the servers of LaunchCluster.
func (m Masters) Close() (err error) {
	for _, s := range m {
		err = errors.Join(err, s.Close())
	}
	return err
}
