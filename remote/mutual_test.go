package remote_test

import (
	"crypto/tls"
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

// office is an actor's process behind protoactor's own remote with mutual TLS.
type office struct {
	system *actor.ActorSystem
	shown  chan string // names of the certificates with which it was dialled
}

// open starts an office that shows one certificate where it dials, another
// where it is dialled, and takes those of an authority.
func open(t testing.TB, ours *authority, dials, listens tls.Certificate) *office {
	t.Helper()
	o := &office{system: actorSystem(), shown: make(chan string, 100)}
	listening := encrypted(nil, listens)
	listening.ClientCAs, listening.ClientAuth = ours.pool, tls.RequireAndVerifyClientCert
	listening.VerifyConnection = func(s tls.ConnectionState) error {
		o.shown <- s.PeerCertificates[0].Subject.CommonName
		return nil
	}
	r := premote.NewRemote(o.system, premote.Configure("127.0.0.1", 0,
		premote.WithServerOptions(grpc.Creds(credentials.NewTLS(listening))),
		premote.WithDialOptions(grpc.WithTransportCredentials(credentials.NewTLS(encrypted(ours.pool, dials)))),
	))
	r.Start()
	t.Cleanup(func() { r.Shutdown(false) })
	return o
}

// ask has the gateway of a node asked, and returns what it answers.
func (o *office) ask(t testing.TB, n *node, within time.Duration) (any, error) {
	t.Helper()
	gateway := actor.NewPID(n.server.Address(), n.Gateway().GetId())
	return o.system.Root.RequestFuture(gateway, &messages.Stats{Request: 1, Topic: n.topic.Name()}, within).Result()
}

// A node dials the processes of actors to answer them: both ends show who they
// are, whoever dials.
func TestANodeDialsBackWithMutualTLS(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t), newAuthority(t)
	cfg := encrypted(ours.pool, ours.issue("node", time.Hour))
	cfg.ClientCAs = ours.pool
	right := ours.issue("office", time.Hour)

	t.Run("who is known", func(t *testing.T) {
		t.Parallel()
		n := serve(t, remote.Config{TLS: cfg})
		o := open(t, ours, right, right)
		eventually(t, func() bool {
			answer, err := o.ask(t, n, time.Second)
			_, ok := answer.(*messages.TopicStats)
			return err == nil && ok
		})
		require.Equal(t, "node", receive(t, o.shown))
	})
	for name, c := range map[string]struct {
		listens tls.Certificate
		says    string
	}{
		"who shows another authority's": {others.issue("office", time.Hour), "unknown authority"},
		"who shows an old one":          {ours.issue("office", expired), "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := serve(t, remote.Config{TLS: cfg})
			o := open(t, ours, right, c.listens)
			eventually(t, func() bool {
				_, err := o.ask(t, n, 100*time.Millisecond)
				return err != nil && len(n.log.with(c.says)) == 1
			}, "it is let in, and not dialled")
			require.Empty(t, o.shown)
			n.serves(t)
		})
	}
	t.Run("who is not let in", func(t *testing.T) {
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
		o := open(t, ours, right, right)
		eventually(t, func() bool {
			_, err := o.ask(t, n, 100*time.Millisecond)
			return err != nil && len(n.log.with("the link to it")) == 1
		})
		require.Empty(t, o.shown)
	})
}

// serves asserts that the node still carries out what it is asked for here.
func (n *node) serves(t testing.TB) {
	t.Helper()
	_, err := n.topic.Schedule(t.Context(), n.Client(), "x", wakebell.In(time.Hour))
	require.NoError(t, err)
}
