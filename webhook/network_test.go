package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/wakebell/wakebell"
)

type prefix = netip.Prefix

var (
	prefixOfNone prefix
	insecure     = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // New refuses it
	quiet        = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
)

func TestAddressesThatAreNotPublicAreRefused(t *testing.T) {
	t.Parallel()
	g := &guard{}
	for _, address := range []string{
		"127.0.0.1:80", "127.255.0.9:443", "[::1]:443", "10.0.0.1:443", "172.16.0.1:1", "172.31.255.255:1", "192.168.1.1:1",
		"169.254.169.254:80", "[fe80::1%eth0]:1", "[fd00:ec2::254]:80", "100.64.0.1:1", "100.100.100.200:80", "168.63.129.16:80",
		"192.0.0.192:80", "0.0.0.0:1", "0.1.2.3:1", "[::]:1", "224.0.0.1:1", "239.255.255.250:1", "255.255.255.255:1", "240.0.0.1:1",
		"[ff02::1]:1", "[::ffff:127.0.0.1]:1", "[::ffff:10.0.0.1]:1", "[::ffff:169.254.169.254]:1", "[::127.0.0.1]:1",
		"[64:ff9b::7f00:1]:1", "[64:ff9b::a9fe:a9fe]:1", "[64:ff9b:1::808:808]:1", "[2002:7f00:1::]:1", "[2001::1]:1", "[2001:db8::1]:1", "[fec0::1]:1",
		"192.0.2.1:1", "198.18.0.1:1", "198.51.100.1:1", "203.0.113.1:1", "[3fff::1]:1", "[100::1]:1", "[5f00::1]:1",
		"no address", "",
	} {
		require.ErrorIs(t, g.control(t.Context(), "tcp", address, nil), ErrAddress, address)
	}
	for _, address := range []string{
		"8.8.8.8:443", "172.32.0.1:443", "172.15.0.1:443", "100.128.0.1:1", "[::ffff:8.8.8.8]:1", "[2606:4700::1111]:443", "[64:ff9b::808:808]:443",
	} {
		require.NoError(t, g.control(t.Context(), "tcp", address, nil), address)
	}
}

func TestAllowedNetworks(t *testing.T) {
	t.Parallel()
	parse := func(s string) []netip.Prefix {
		all, err := ParseNetworks(s)
		require.NoError(t, err, s)
		return all
	}
	for network, address := range map[string]string{
		"loopback": "[::1]:1", "127.0.0.1": "127.0.0.1:1", "private": "192.168.3.4:1", "10.1.2.3/16": "10.1.255.255:1",
		"::ffff:10.0.0.1": "[::ffff:10.0.0.1]:1", "fd00::/8": "[fd00::1%eth0]:1", "169.254.169.254": "169.254.169.254:80",
	} {
		require.NoError(t, (&guard{allowed: parse(network)}).control(t.Context(), "tcp", address, nil), network)
	}
	for network, address := range map[string]string{
		"loopback": "10.0.0.1:1", "127.0.0.1": "127.0.0.2:1", "private": "169.254.169.254:80", "10.1.2.3/16": "10.2.0.0:1",
	} {
		require.ErrorIs(t, (&guard{allowed: parse(network)}).control(t.Context(), "tcp", address, nil), ErrAddress, network)
	}
	for _, wrong := range []string{"", "all", "10.0.0.0/33", "fe80::1%eth0", "::ffff:10.0.0.0/104", "example.com"} {
		_, err := ParseNetworks(wrong)
		require.ErrorIs(t, err, wakebell.ErrInvalid, wrong)
	}
	require.ErrorIs(t, (&guard{allowed: parse("private"), loopbackOnly: true}).control(t.Context(), "tcp", "10.0.0.1:80", nil), ErrAddress,
		"http without TLS stays on this machine")
}

func TestLoopbackIsNotCalledUnlessAllowed(t *testing.T) {
	t.Parallel()
	var called atomic.Bool
	w := endpoint(t, Config{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		func(http.ResponseWriter, received) { called.Store(true) })
	err := w.Handle(t.Context(), bill(t, "x"))
	require.ErrorIs(t, err, ErrAddress)
	require.ErrorContains(t, err, "127.0.0.1 is not public")
	require.False(t, wakebell.IsRejected(err), "a record of DNS may be corrected")
	require.False(t, called.Load())
}

// The name has an allowed address when it is resolved first, and another one for the next
// connection.
func TestRebindingIsRefused(t *testing.T) {
	t.Parallel()
	var called atomic.Int32
	server := httptest.NewServer(verified(t, func(http.ResponseWriter, received) { called.Add(1) }))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	require.NoError(t, err)
	w := hookTo(t, "http://rebound.example:"+at.Port(), Config{AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	var address atomic.Pointer[[4]byte]
	w.dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go answerNames(far, &address)
		return near, nil
	}}
	address.Store(&[4]byte{127, 0, 0, 1})
	require.NoError(t, w.Handle(t.Context(), bill(t, "x")))
	w.Close() // the connection that was checked
	address.Store(&[4]byte{127, 0, 0, 2})
	err = w.Handle(t.Context(), bill(t, "x"))
	require.ErrorIs(t, err, ErrAddress)
	require.ErrorContains(t, err, "POST to rebound.example: ")
	require.EqualValues(t, 1, called.Load())
}

// answerNames serves DNS over a stream: each name has this address.
func answerNames(conn net.Conn, address *atomic.Pointer[[4]byte]) {
	defer func() { _ = conn.Close() }()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, question); err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(question) != nil || len(m.Questions) == 0 {
			return
		}
		m.Response, m.Additionals = true, nil
		if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}, Body: &dnsmessage.AResource{A: *address.Load()},
			}}
		}
		answer, err := m.Pack()
		if err != nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

func TestTLSIsVerified(t *testing.T) {
	t.Parallel()
	start := func(change func(*httptest.Server)) *httptest.Server {
		server := httptest.NewUnstartedServer(verified(t, func(w http.ResponseWriter, r received) {
			w.Header().Set("Proto", r.Proto)
		}))
		server.Config.ErrorLog = quiet
		change(server)
		server.StartTLS()
		t.Cleanup(server.Close)
		return server
	}
	server := start(func(s *httptest.Server) { s.EnableHTTP2 = true })
	err := hookTo(t, server.URL, Config{}).Handle(t.Context(), bill(t, "x"))
	require.ErrorContains(t, err, "certificate")
	require.False(t, wakebell.IsRejected(err))

	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	require.NoError(t, hookTo(t, server.URL, Config{TLS: &tls.Config{RootCAs: pool}}).Handle(t.Context(), bill(t, "x")))

	old := start(func(s *httptest.Server) { s.TLS = &tls.Config{MaxVersion: tls.VersionTLS11} })
	pool.AddCert(old.Certificate())
	err = hookTo(t, old.URL, Config{TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10}}).Handle(t.Context(), bill(t, "x"))
	require.ErrorContains(t, err, "protocol version")
}
