package remote_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// beOffice is a process with an actor behind protoactor's own remote with mutual TLS,
// with its certificates in a directory. It repeatedly sends requests to a node, and
// prints the answers and the common name of each peer that dials it.
func beOffice(address, topic, dir string) error {
	pool := x509.NewCertPool()
	authority, err := os.ReadFile(filepath.Join(dir, "authority"))
	if err != nil || !pool.AppendCertsFromPEM(authority) {
		return fmt.Errorf("the authority: %w", err)
	}
	var shown [2]tls.Certificate
	for i, file := range []string{"dials", "listens"} {
		path := filepath.Join(dir, file)
		if shown[i], err = tls.LoadX509KeyPair(path, path); err != nil {
			return err
		}
	}
	listening := encrypted(nil, shown[1])
	listening.ClientCAs, listening.ClientAuth = pool, tls.RequireAndVerifyClientCert
	listening.VerifyConnection = func(s tls.ConnectionState) error {
		fmt.Println("dialled by", s.PeerCertificates[0].Subject.CommonName)
		return nil
	}
	system := actorSystem()
	premote.NewRemote(system, premote.Configure("127.0.0.1", 0,
		premote.WithServerOptions(grpc.Creds(credentials.NewTLS(listening))),
		premote.WithDialOptions(grpc.WithTransportCredentials(credentials.NewTLS(encrypted(pool, shown[0])))),
	)).Start()
	gateway := actor.NewPID(address, "wakebell/gateway")
	for {
		answer, err := system.Root.RequestFuture(gateway, &messages.GetTopicStatsRequest{Request: 1, Topic: topic}, time.Second).Result()
		if _, ok := answer.(*messages.GetTopicStatsResponse); ok && err == nil {
			fmt.Println("answered")
		} else {
			fmt.Println("not answered")
		}
	}
}

// open starts an office that accepts the certificates of an authority. It presents
// one certificate as a client and another as a server.
func open(t testing.TB, n *node, ours *authority, dials, listens tls.Certificate) *child {
	t.Helper()
	dir := t.TempDir()
	for file, c := range map[string]tls.Certificate{"authority": {Certificate: [][]byte{ours.cert.Raw}}, "dials": dials, "listens": listens} {
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
		if c.PrivateKey != nil {
			key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
			require.NoError(t, err)
			text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), text, 0o600))
	}
	return spawn(t, "office", n.server.Address(), n.topic.Name(), dir)
}

// A node dials the processes of actors to answer them. Both sides authenticate in
// both directions.
func TestNodeDialsBackWithMutualTLS(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t), newAuthority(t)
	cfg := encrypted(ours.pool, ours.issue("node", time.Hour))
	cfg.ClientCAs = ours.pool
	right := ours.issue("office", time.Hour)

	t.Run("known certificates", func(t *testing.T) {
		t.Parallel()
		n := serve(t, remote.Config{TLS: cfg})
		o := open(t, n, ours, right, right)
		eventually(t, func() bool { return o.said("answered") > 0 })
		require.Positive(t, o.said("dialled by node"))
	})
	for name, c := range map[string]struct {
		listens tls.Certificate
		says    string
	}{
		"of another authority": {others.issue("office", time.Hour), "unknown authority"},
		"expired":              {ours.issue("office", expired), "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := serve(t, remote.Config{TLS: cfg})
			o := open(t, n, ours, right, c.listens)
			eventually(t, func() bool { return len(n.log.with(c.says)) == 1 && o.said("not answered") > 0 })
			require.Zero(t, o.said("answered"))
			require.Empty(t, o.after("dialled by "))
			n.serves(t)
		})
	}
	t.Run("an unknown client certificate", func(t *testing.T) {
		t.Parallel()
		n := serve(t, remote.Config{TLS: cfg})
		wrong := credentials.NewTLS(encrypted(ours.pool, others.issue("office", time.Hour)))
		stream, err := premote.NewRemotingClient(n.dial(t, grpc.WithTransportCredentials(wrong))).Receive(t.Context())
		if err == nil {
			_, err = stream.Recv()
		}
		require.Equal(t, codes.Unavailable, status.Code(err), err)
		n.serves(t)
	})
	t.Run("a node that is not known", func(t *testing.T) {
		t.Parallel()
		stranger := encrypted(ours.pool, ours.issue("node", time.Hour))
		stranger.ClientCAs = ours.pool
		stranger.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			wrong := others.issue("node", time.Hour)
			return &wrong, nil
		}
		n := serve(t, remote.Config{TLS: stranger})
		o := open(t, n, ours, right, right)
		eventually(t, func() bool { return len(n.log.with("the link to it")) == 1 && o.said("not answered") > 0 })
		require.Zero(t, o.said("answered"))
		require.Empty(t, o.after("dialled by "))
	})
}

// serves asserts that the node still carries out requests of its own process.
func (n *node) serves(t testing.TB) {
	t.Helper()
	_, err := n.topic.Schedule(t.Context(), n.Client(), "x", wakebell.In(time.Hour))
	require.NoError(t, err)
}
