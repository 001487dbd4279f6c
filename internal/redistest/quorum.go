package redistest

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Quorum adds two Sentinels until the end of the test, and waits until all three know
// each other. From then on a failover needs two of them. It returns the addresses of
// all three.
func (w *Watched) Quorum(t testing.TB) []string {
	t.Helper()
	all := []*Server{w.Sentinel, startSentinel(t, w.Master), startSentinel(t, w.Master)}
	addrs := make([]string, len(all))
	for i, s := range all {
		addrs[i] = s.Addr
		c := redis.NewSentinelClient(&redis.Options{Addr: s.Addr})
		closeAfter(t, c)
		if err := c.Set(t.Context(), MasterName, "quorum", "2").Err(); err != nil {
			t.Fatalf("redistest: quorum: %v", err)
		}
		await(t, "the Sentinels to know each other", func() error {
			others, err := c.Sentinels(t.Context(), MasterName).Result()
			if err == nil && len(others) != len(all)-1 {
				err = fmt.Errorf("others: %v", others)
			}
			return err
		})
	}
	return addrs
}
