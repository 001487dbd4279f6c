// Package conntest makes the connections of tests.
package conntest

import (
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/opened"
)

// New returns a Connection on rdb that logs nothing unless cfg has a Logger.
func New(t testing.TB, rdb redis.UniversalClient, cfg connection.Config) *connection.Connection {
	t.Helper()
	return Switched(t, rdb, cfg, opened.Switches{})
}

// Switched returns a Connection with switches.
func Switched(t testing.TB, rdb redis.UniversalClient, cfg connection.Config, s opened.Switches) *connection.Connection {
	t.Helper()
	conn, err := connection.Switched(rdb, quiet(cfg), s)
	require.NoError(t, err)
	return conn
}

// WithoutRedis returns a Connection without Redis that logs nothing unless cfg has a
// Logger.
func WithoutRedis(t testing.TB, cfg connection.Config) *connection.Connection {
	t.Helper()
	conn, err := connection.WithoutRedis(quiet(cfg))
	require.NoError(t, err)
	return conn
}

func quiet(cfg connection.Config) connection.Config {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg
}
