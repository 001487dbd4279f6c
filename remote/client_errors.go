package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// linkError is an error of the link to a node. It wraps a sentinel without its text,
// because the text of wakebell.ErrUnavailable is about Redis.
type linkError struct {
	address  string
	what     string
	sentinel error
	cause    error
}

func (e *linkError) Error() string   { return "node " + e.address + ": " + e.what }
func (e *linkError) Unwrap() []error { return []error{e.sentinel, e.cause} }

// unavailable returns the error of a node that cannot be reached now.
func (c DialConfig) unavailable(cause error) error {
	return &linkError{c.address, plain(cause), wakebell.ErrUnavailable, cause}
}

// denied returns the error of credentials that the node rejects.
func (c DialConfig) denied(cause error) error {
	return &linkError{c.address, fmt.Sprintf("%v: %s", ErrDenied, plain(cause)), ErrDenied, cause}
}

// plain returns the text of an error without the prefixes of gRPC and the layers
// below it.
func plain(err error) string {
	if s, ok := status.FromError(err); ok && err != nil {
		return s.Message()
	}
	if verification, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return strings.TrimPrefix(verification.Err.Error(), "x509: ")
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if op.Op == "remote error" {
			return "the node refused the TLS handshake: " + strings.TrimPrefix(op.Err.Error(), "tls: ")
		}
		return op.Op + ": " + op.Err.Error()
	}
	if err == nil {
		return "the link is down"
	}
	return err.Error()
}

var (
	errSpeaksTLS   = errors.New("it speaks TLS and was dialled without (tls:// or Config.TLS)")
	errSpeaksPlain = errors.New("it does not speak TLS and was dialled with it (plain:// or without Config.TLS)")
	errClosedEarly = errors.New("it closed the connection before it sent data; it may require TLS or a client certificate")
)

// dialErrors stores the last error of connecting, because gRPC reports only its text.
type dialErrors struct {
	mu  sync.Mutex
	err error // nil: the link has been up since
}

func (t *dialErrors) Note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

// reason returns why a stream failed: the last error of connecting if the node is
// unavailable, or err.
func (t *dialErrors) reason(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil && status.Code(err) == codes.Unavailable {
		return t.err
	}
	return err
}

// permanent reports whether a retry with the same configuration cannot help.
func permanent(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		text := op.Err.Error()
		return strings.Contains(text, "certificate") || strings.Contains(text, "protocol version") || strings.Contains(text, "handshake failure")
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	return untrusted || unknown || errors.Is(err, errSpeaksTLS) || errors.Is(err, errSpeaksPlain)
}

// refusesCertificate reports whether the node rejected the client certificate.
func refusesCertificate(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate")
}

// options returns the options of a connection whose errors t stores.
func (t *dialErrors) options(cfg Config) []grpc.DialOption {
	return append(wire.DialOptions(cfg.TLS, cfg.MaxMessage),
		grpc.WithTransportCredentials(&watchedCredentials{wire.Transport(cfg.TLS), t, cfg.TLS != nil}),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			dial := cfg.network.Dial
			if dial == nil {
				dial = (&net.Dialer{Timeout: wire.DialTimeout}).DialContext
			}
			conn, err := dial(ctx, "tcp", address)
			if err != nil {
				t.Note(err)
			}
			return conn, err
		}),
	)
}

type watchedCredentials struct {
	credentials.TransportCredentials
	errs      *dialErrors
	encrypted bool
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *watchedCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		if _, plain := errors.AsType[tls.RecordHeaderError](err); plain {
			err = errSpeaksPlain
		}
		c.errs.Note(err)
		return nil, nil, err
	}
	return &watchedConn{Conn: conn, errs: c.errs, encrypted: c.encrypted}, info, nil
}

// Clone implements credentials.TransportCredentials.
func (c *watchedCredentials) Clone() credentials.TransportCredentials {
	return &watchedCredentials{c.TransportCredentials.Clone(), c.errs, c.encrypted}
}

// watchedConn inspects the first bytes that a node sends, to find out whether both
// ends use TLS.
type watchedConn struct {
	net.Conn
	errs      *dialErrors
	encrypted bool
	heard     bool // touched by the one goroutine that reads
}

// Read implements net.Conn.
func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.heard {
		return n, err
	}
	switch {
	case n > 0 && !c.encrypted && bytes.HasPrefix(p[:n], wire.AlertProtocolVersion[:2]):
		c.heard = true
		c.errs.Note(errSpeaksTLS)
	case n > 0:
		c.heard = true
		c.errs.Note(nil)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.ErrUnexpectedEOF):
		c.errs.Note(errClosedEarly)
	case err != nil && !errors.Is(err, net.ErrClosed):
		c.errs.Note(err)
	}
	return n, err
}
