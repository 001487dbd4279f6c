package remote_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

func TestTokensAreReplacedWhileItServes(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	const next = "another-secret-of-bytes"
	with := func(token string) error {
		c, err := remote.Dial(t.Context(), n.server.Address(), conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{
			Config:   remote.Config{Token: token},
			DeadLink: time.Minute,
		})
		if err == nil {
			t.Cleanup(c.Close)
			_, err = c.Stats(t.Context(), n.topic.Name())
		}
		return err
	}
	before := dial(t, n)
	events, ended := watch(t.Context(), before, n.topic.Name())
	receive(t, events)
	require.NoError(t, with(secret))
	require.ErrorIs(t, with(next), remote.ErrDenied)
	require.NoError(t, n.server.SetTokens(map[string]string{secret: "tests", next: "tests"}, nil))
	require.NoError(t, with(secret))
	require.NoError(t, with(next))
	require.Empty(t, ended)
	require.NoError(t, n.server.SetTokens(map[string]string{next: "tests"}, nil))
	require.ErrorIs(t, with(secret), remote.ErrDenied)
	require.NoError(t, with(next))
	require.Error(t, receive(t, ended), "a subscription ends with its token")
	_, err := before.Stats(t.Context(), n.topic.Name())
	require.ErrorIs(t, err, remote.ErrDenied)

	for _, wrong := range []map[string]string{{}, {"short": "tests"}, {next: ""}} {
		require.ErrorIs(t, n.server.SetTokens(wrong, nil), wakebell.ErrInvalid)
	}
	open := serve(t, remote.Config{})
	require.ErrorIs(t, open.server.SetTokens(map[string]string{secret: "tests"}, nil), wakebell.ErrInvalid)
}

// A misspelt name of an operator is logged when a node starts, not when the operator
// makes the first call.
func TestOperatorsWithoutTokenAreLogged(t *testing.T) {
	t.Parallel()
	const about = "an operator has no token"
	cfg := withToken()
	cfg.Operators = []string{"tests", "tsets"}
	n := serve(t, cfg)
	told := n.log.with(about)
	require.Len(t, told, 1)
	require.Contains(t, told[0], "operator=tsets")
	require.NoError(t, n.server.SetTokens(map[string]string{secret: "tsets"}, nil))
	require.Contains(t, n.log.with(about)[1], "operator=tests")

	require.Len(t, serve(t, remote.Config{Operators: []string{"a"}}).log.with(about), 1, "peers have no names")
	ours := newAuthority(t)
	named := encrypted(ours.pool, ours.issue("node", time.Hour))
	named.ClientCAs = ours.pool
	require.Empty(t, serve(t, remote.Config{TLS: named, Operators: []string{"a"}}).log.with(about), "a certificate may name it")
	require.Empty(t, serve(t, withToken()).log.with(about))
}

// A token that gets another owner loses the connections of the former one.
func TestTokenWithAnotherOwnerLosesItsConnections(t *testing.T) {
	t.Parallel()
	n := serve(t, withRights(t, "tests * *"))
	c, k := dialAs(t, n, secret), talk(t, n, secret)
	_, err := c.Stats(t.Context(), n.topic.Name())
	require.NoError(t, err)
	require.IsType(t, &messages.GetTopicStatsResponse{}, k.ask(&messages.GetTopicStatsRequest{Topic: n.topic.Name()}))
	require.NoError(t, n.server.SetTokens(map[string]string{secret: "mallory"}, nil))
	ended := make(chan error, 1)
	go func() { ended <- k.stream.RecvMsg(&messages.Replies{}) }()
	require.Error(t, receive(t, ended))
	_, err = c.Stats(t.Context(), n.topic.Name())
	require.ErrorIs(t, err, wakebell.ErrForbidden)
}
