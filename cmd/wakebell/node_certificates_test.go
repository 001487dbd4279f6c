package main

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
)

// A node, its Redis and its peers use certificates, which are renewed while the node
// runs.
func TestNodeWithCertificates(t *testing.T) {
	t.Parallel()
	s := redistest.StartTLS(t)
	own := filepath.Join(t.TempDir(), "node")
	copyFile := func(from, to string) {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, text, 0o600))
	}
	server := filepath.Join(filepath.Dir(s.CA), "server")
	copyFile(server+".crt", own+".crt")
	copyFile(server+".key", own+".key")
	b := &bundle{t: t, topic: "t", redis: "rediss://" + s.TLSAddr}
	tokens := tokenFile(t, secret)
	node := b.start("node", "--listen", "127.0.0.1:0", "--token-file", tokens, "--tls-ca", s.CA,
		"--tls-cert", own+".crt", "--tls-key", own+".key", "--tls-client-ca", s.CA,
		"--redis-tls-cert", s.Cert, "--redis-tls-key", s.Key, "--health", "127.0.0.1:0")
	address := node.listener()
	_, health := node.health("/readyz")
	require.Equal(t, address, health["listener"])
	code, _ := node.health("/livez")
	require.Equal(t, http.StatusOK, code)

	client := []string{"--tls-ca", s.CA, "--tls-cert", s.Cert, "--tls-key", s.Key}
	works := func(at string, flags ...string) (int, string) {
		code, _, stderr := b.plainly(append(append(flags, client...), "--remote", at, "schedule", "-t", "TOPIC", "--in", "1h")...)
		return code, stderr
	}
	code, stderr := works(address, "--token-file", tokens)
	require.Zero(t, code, stderr)
	code, stderr = works("tls://"+address, "--token-file", tokens)
	require.Zero(t, code, stderr)
	code, stderr = works(address)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "credentials are rejected")
	client = client[:2]
	code, stderr = works(address, "--token-file", tokens)
	require.Equal(t, cli.ExitError, code, "a token and no certificate: %s", stderr)
	client = nil
	code, _ = works("plain://"+address, "--token-file", tokens)
	require.Equal(t, cli.ExitError, code)

	shown := func() string {
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
		defer func() { require.NoError(t, conn.Close()) }()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	require.Equal(t, "server", shown())
	copyFile(s.Cert, own+".crt")
	require.Equal(t, "server", shown(), "the new key is not written yet")
	copyFile(s.Key, own+".key")
	require.Equal(t, "client", shown())
	node.says("certificates were read again")
}
