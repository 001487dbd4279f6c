package connection_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/dashboard"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/outbox"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// What needs Redis refuses a connection without it, and everything refuses a zero one. An
// error names the argument.
func TestUnusableConnectionsAreRefused(t *testing.T) {
	t.Parallel()
	local, err := connection.WithoutRedis(connection.Config{})
	require.NoError(t, err)
	need := map[string]func(*connection.Connection) error{
		"client":    func(c *connection.Connection) error { _, err := wakebell.NewClient(c); return err },
		"queues":    func(c *connection.Connection) error { _, err := queue.NewClient(c); return err },
		"schedules": func(c *connection.Connection) error { _, err := recurring.New(c); return err },
		"gates":     func(c *connection.Connection) error { _, err := gate.New(c, gate.Config{}); return err },
	}
	for name, make := range need {
		for _, c := range []*connection.Connection{nil, {}, local} {
			err := make(c)
			require.ErrorIs(t, err, wakebell.ErrInvalid, name)
			require.ErrorContains(t, err, "conn: ", name)
			require.ErrorContains(t, err, "connection.New", name)
		}
	}
	none := map[string]func(*connection.Connection) error{
		"outbox": func(c *connection.Connection) error {
			_, err := outbox.New(c, outbox.SQLite, outbox.Config{})
			return err
		},
		"dashboard": func(c *connection.Connection) error {
			_, err := dashboard.New(c, dashboard.Operators{Timers: &wakebell.Client{}}, dashboard.Config{})
			return err
		},
	}
	for name, make := range none {
		require.NoError(t, make(nil), name)
		require.NoError(t, make(local), name)
		require.ErrorContains(t, make(&connection.Connection{}), "conn: ", name)
	}
	var zero connection.Connection
	require.Nil(t, zero.Redis())
	require.Nil(t, local.Redis())
	require.Zero(t, zero.Config())
	require.Equal(t, connection.DefaultPayloadLimit, local.Config().PayloadLimit)
}

// One error has all mistakes of a configuration.
func TestInvalidConfigurationsAreRefused(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	for name, c := range map[string]struct {
		cfg  connection.Config
		says []string
	}{
		"payload limit":    {connection.Config{PayloadLimit: 512<<20 + 1}, []string{"PayloadLimit", "536870912"}},
		"equal keys":       {connection.Config{Keys: wakebelltype.Keys{Timeline: "k", Payloads: "k"}}, []string{"Timeline", "Payloads", `"k"`}},
		"equal gate keys":  {connection.Config{GateKeys: wakebelltype.GateKeys{Stream: "k", State: "k"}}, []string{"Stream", "State"}},
		"audit":            {connection.Config{Audit: wakebelltype.AuditConfig{Key: "timers_timeline"}}, []string{"Audit.Key"}},
		"read from":        {connection.Config{ReadFrom: redis.NewClusterClient(&redis.ClusterOptions{})}, []string{"ReadFrom"}},
		"middleware":       {connection.Config{ScheduleMiddleware: []wakebelltype.ScheduleMiddleware{nil}}, []string{"ScheduleMiddleware"}},
		"several mistakes": {connection.Config{PayloadLimit: -1, MetricTopics: 100_001, Keys: wakebelltype.Keys{Timeline: "k", Payloads: "k"}}, []string{"PayloadLimit", "MetricTopics", "Timeline"}},
	} {
		_, err := connection.New(rdb, c.cfg)
		require.ErrorIs(t, err, wakebell.ErrInvalid, name)
		for _, word := range c.says {
			require.ErrorContains(t, err, word, name)
		}
	}
	_, err := connection.New(nil, connection.Config{})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	require.ErrorContains(t, err, "rdb: nil; connection.WithoutRedis")
}
