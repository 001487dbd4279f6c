package remote_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/remote"
)

// A stolen token is of no use without the certificate that it is bound to.
func TestTokenIsBoundToCertificate(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	cfg := encrypted(nil, ours.issue("node", time.Hour))
	cfg.ClientCAs = ours.pool
	billing, other := ours.issue("billing", time.Hour), ours.issue("mallory", time.Hour)
	digest := sha256.Sum256(billing.Leaf.Raw)
	for name, certificate := range map[string]string{"by its name": "cn:billing", "by its fingerprint": "sha256:" + hex.EncodeToString(digest[:])} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := serve(t, remote.Config{TLS: cfg, Tokens: map[string]string{secret: "billing"}, TokenCertificates: map[string]string{secret: certificate}})
			_, err := dialTLS(t, n, secret, encrypted(ours.pool, other))
			require.ErrorIs(t, err, remote.ErrDenied)
			require.ErrorContains(t, err, "not valid with this certificate")
			eventually(t, func() bool { _, err := dialTLS(t, n, secret, encrypted(ours.pool, billing)); return err == nil })
			require.NoError(t, n.server.SetTokens(map[string]string{secret: "billing"}, nil))
			eventually(t, func() bool { _, err := dialTLS(t, n, secret, encrypted(ours.pool, other)); return err == nil })
			require.NoError(t, n.server.SetTokens(map[string]string{secret: "billing"}, map[string]string{secret: certificate}))
			_, err = dialTLS(t, n, secret, encrypted(ours.pool, other))
			require.ErrorIs(t, err, remote.ErrDenied)
			require.ErrorIs(t, n.server.SetTokens(map[string]string{secret: "billing"}, map[string]string{secret: "billing"}), wakebell.ErrInvalid)
		})
	}
	n := serve(t, withToken())
	require.ErrorIs(t, n.server.SetTokens(map[string]string{secret: "a"}, map[string]string{secret: "cn:a"}), wakebell.ErrInvalid, "no certificate is required")
}

// Errors name the node and the cause. They are returned at once if a retry cannot
// help, although DeadLink is a minute.
func TestErrorsOfLinkNameNode(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t), newAuthority(t)
	encryptedNode := serve(t, remote.Config{TLS: encrypted(nil, ours.issue("node", time.Hour))})
	plainNode := serve(t, withToken())
	const minute = time.Minute
	for name, c := range map[string]struct {
		node *node
		cfg  remote.DialConfig
		is   error
		says string
	}{
		"another authority": {encryptedNode, remote.DialConfig{Config: remote.Config{TLS: encrypted(others.pool)}, DeadLink: minute}, wakebell.ErrUnavailable, "certificate signed by unknown authority"},
		"plain against TLS": {encryptedNode, remote.DialConfig{DeadLink: minute}, wakebell.ErrUnavailable, "it speaks TLS"},
		"TLS against plain": {plainNode, remote.DialConfig{Config: remote.Config{TLS: encrypted(ours.pool)}, DeadLink: minute}, wakebell.ErrUnavailable, "it does not speak TLS"},
		"an unknown token":  {plainNode, remote.DialConfig{Config: remote.Config{Token: "an-unknown-token"}, DeadLink: minute}, remote.ErrDenied, "the token is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := remote.Dial(t.Context(), c.node.server.Address(), conntest.WithoutRedis(t, connection.Config{}), c.cfg)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, "node "+c.node.server.Address()+": ")
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "redis")
			require.Less(t, time.Since(began), minute, "a retry cannot help")
		})
	}
	address := deadAddress(t)
	_, err := remote.Dial(t.Context(), address, conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{DeadLink: 2 * time.Second})
	require.ErrorIs(t, err, wakebell.ErrUnavailable)
	require.EqualError(t, err, "node "+address+": dial: connect: connection refused")
	eventually(t, func() bool { return len(encryptedNode.log.with("the TLS handshake failed")) == 1 })
}
