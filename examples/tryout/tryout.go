// Package tryout gives the examples a Redis, so that they run without one. It is not
// internal, so that an example runs as it is where you copy it to; it may change with them.
package tryout

import (
	"log"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/embedded"
)

// Redis connects to the Redis of WAKEBELL_REDIS (redis://host:port) or, without
// it, to an in-process imitation that stores nothing on disk. Your program calls
// redis.NewClient instead.
func Redis() (rdb *redis.Client, done func()) {
	if url := os.Getenv("WAKEBELL_REDIS"); url != "" {
		options, err := redis.ParseURL(url)
		if err != nil {
			log.Fatalf("WAKEBELL_REDIS: %v", err)
		}
		rdb := redis.NewClient(options)
		return rdb, func() { _ = rdb.Close() }
	}
	server := embedded.Start()
	rdb = server.Client()
	return rdb, func() {
		_ = rdb.Close()
		server.Close()
	}
}
