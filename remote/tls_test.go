package remote_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/remote"
)

// authority issues certificates.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, pool: x509.NewCertPool()}
	template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	made := a.sign(template, "authority", time.Hour)
	a.cert, a.key = made.Leaf, made.PrivateKey.(*ecdsa.PrivateKey)
	a.pool.AddCert(a.cert)
	return a
}

// issue returns a certificate for loopback that is valid for d from now on.
func (a *authority) issue(name string, life time.Duration) tls.Certificate {
	return a.sign(&x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, name, life)
}

func (a *authority) sign(template *x509.Certificate, name string, life time.Duration) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(a.t, err)
	template.Subject = pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(life)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(a.t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

const expired = -time.Hour

func encrypted(pool *x509.CertPool, shown ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: pool, Certificates: shown, MinVersion: tls.VersionTLS12}
}

// dialTLS makes one attempt to connect, with a short deadline.
func dialTLS(t testing.TB, n *node, token string, cfg *tls.Config) (*remote.Client, error) {
	t.Helper()
	c, err := remote.Dial(t.Context(), n.server.Address(), conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{
		Config:   remote.Config{Token: token, TLS: cfg},
		DeadLink: 500 * time.Millisecond,
	})
	if err == nil {
		t.Cleanup(c.Close)
		_, err = n.topic.Schedule(t.Context(), c, "x", wakebell.In(time.Hour))
	}
	return c, err
}

// visit is an attempt to use a node.
type visit struct {
	token string
	tls   *tls.Config
	fails string // a part of the error; empty: none
}

func TestCredentialsOfClientsWithTLS(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t), newAuthority(t)
	server := ours.issue("node", time.Hour)
	tokens := map[string]string{secret: "tests"}
	mutual := func(c *tls.Config) *tls.Config { c.ClientCAs = ours.pool; return c }
	for name, serving := range map[string]struct {
		cfg   remote.Config
		cases map[string]visit
	}{
		"TLS": {remote.Config{TLS: encrypted(nil, server)}, map[string]visit{
			"a known authority":    {"", encrypted(ours.pool), ""},
			"an unknown authority": {"", encrypted(others.pool), "unknown authority"},
			"another name":         {"", &tls.Config{RootCAs: ours.pool, ServerName: "other"}, "wanted to match other"},
			"no TLS":               {"", nil, "it speaks TLS"},
			"an old TLS (1.0–1.1)": {"", &tls.Config{RootCAs: ours.pool, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}, "protocol version"},
		}},
		"an expired certificate": {remote.Config{TLS: encrypted(nil, ours.issue("node", expired))}, map[string]visit{
			"any client": {"", encrypted(ours.pool), "expired"},
		}},
		"mutual TLS": {remote.Config{TLS: mutual(encrypted(nil, server))}, map[string]visit{
			"a certificate":                      {"", encrypted(ours.pool, ours.issue("a", time.Hour)), ""},
			"no certificate":                     {"", encrypted(ours.pool), "certificate required"},
			"an expired certificate":             {"", encrypted(ours.pool, ours.issue("a", expired)), "certificate"},
			"a certificate of another authority": {"", encrypted(ours.pool, others.issue("a", time.Hour)), "certificate"},
		}},
		"mutual TLS and tokens": {remote.Config{TLS: mutual(encrypted(nil, server)), Tokens: tokens}, map[string]visit{
			"token and certificate":                {secret, encrypted(ours.pool, ours.issue("a", time.Hour)), ""},
			"the certificate only":                 {"", encrypted(ours.pool, ours.issue("a", time.Hour)), "bearer token"},
			"a wrong token":                        {secret + "x", encrypted(ours.pool, ours.issue("a", time.Hour)), "not known"},
			"the token only":                       {secret, encrypted(ours.pool), "certificate required"},
			"the token and an expired certificate": {secret, encrypted(ours.pool, ours.issue("a", expired)), "certificate"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := serve(t, serving.cfg)
			for who, c := range serving.cases {
				t.Run(who, func(t *testing.T) {
					t.Parallel()
					var err error
					eventually(t, func() bool { // on a busy machine an attempt may time out
						_, err = dialTLS(t, n, c.token, c.tls)
						return (err == nil) == (c.fails == "") && (err == nil || strings.Contains(err.Error(), c.fails))
					}, who)
				})
			}
		})
	}
}

// The common name of the certificate is the principal.
func TestCertificateNamesOwner(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	cfg := encrypted(nil, ours.issue("node", time.Hour))
	cfg.ClientCAs = ours.pool
	n := serve(t, remote.Config{TLS: cfg})
	ctx := remote.WithKey(t.Context(), "order-42")
	draft := n.topic.Draft("x", wakebell.ID("one"), wakebell.In(time.Hour))
	var dues []time.Time
	for _, owner := range []string{"a", "b", "b"} {
		shown := encrypted(ours.pool, ours.issue(owner, time.Hour))
		var c *remote.Client
		eventually(t, func() bool {
			var err error
			c, err = dialTLS(t, n, "", shown)
			return err == nil
		})
		stored, err := c.Schedule(ctx, draft)
		require.NoError(t, err)
		dues = append(dues, stored[0].Due)
	}
	require.True(t, dues[1].After(dues[0]), "of two owners both may use a key")
	require.Equal(t, dues[1], dues[2], "and the same is answered as before")
}
