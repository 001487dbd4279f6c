package remote_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/remote"
)

func unserved(t testing.TB) *wakebell.System {
	t.Helper()
	sys, err := wakebell.New(actorSystem(), conntest.New(t, redistest.Shared(t), connection.Config{Logger: quiet}), wakebell.Config{})
	require.NoError(t, err)
	return sys
}

func TestServeRejectsInsecureConfigurations(t *testing.T) {
	t.Parallel()
	tokens := map[string]string{secret: "tests"}
	for name, cfg := range map[string]remote.Config{
		"nothing at all":          {Address: "192.0.2.1:0"},
		"a token without TLS":     {Address: "192.0.2.1:0", Tokens: tokens},
		"TLS without credentials": {Address: "192.0.2.1:0", TLS: &tls.Config{MinVersion: tls.VersionTLS13}},
		"all addresses":           {Address: "0.0.0.0:0", Advertise: "192.0.2.1:7"},
		"no address":              {Address: ":0", Advertise: "192.0.2.1:7"},
	} {
		_, err := remote.Serve(unserved(t), cfg)
		require.ErrorIs(t, err, remote.ErrInsecure, name)
	}
	for name, cfg := range map[string]remote.Config{
		"said so":      {Address: "192.0.2.1:0", Insecure: true},
		"token":        {Address: "192.0.2.1:0", Tokens: tokens, TLS: &tls.Config{MinVersion: tls.VersionTLS13}},
		"certificates": {Address: "192.0.2.1:0", TLS: &tls.Config{MinVersion: tls.VersionTLS13, ClientCAs: x509.NewCertPool()}},
	} {
		_, err := remote.Serve(unserved(t), cfg) // not an address of this machine
		require.Error(t, err)
		require.NotErrorIs(t, err, remote.ErrInsecure, name)
	}
}

func TestServeRejectsInvalidConfigurations(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]remote.Config{
		"no port":                  {Address: "127.0.0.1"},
		"a port beyond":            {Address: "127.0.0.1:70000"},
		"nowhere to answer":        {Address: "0.0.0.0:0", Insecure: true},
		"a short token":            {Tokens: map[string]string{"short": "x"}},
		"a token with space":       {Tokens: map[string]string{"a token of sixteen bytes": "x"}},
		"a token without an owner": {Tokens: map[string]string{secret: ""}},
		"tiny frames":              {MaxMessage: 1},
		"no connections":           {MaxConnections: -1},
		"advertise nothing":        {Advertise: "here"},
	} {
		_, err := remote.Serve(unserved(t), cfg)
		require.ErrorIs(t, err, wakebell.ErrInvalid, name)
	}
	_, err := remote.Serve(nil, remote.Config{})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

func TestServeReturnsErrorIfItCannotListen(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	_, err = remote.Serve(unserved(t), remote.Config{Address: l.Addr().String()})
	require.ErrorContains(t, err, "address already in use")
}

func TestServeComesBeforeStart(t *testing.T) {
	t.Parallel()
	sys := unserved(t)
	require.NoError(t, sys.Start(t.Context()))
	_, err := remote.Serve(sys, remote.Config{})
	require.ErrorIs(t, err, remote.ErrStarted)
	require.NoError(t, sys.Stop())
}
