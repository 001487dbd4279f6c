package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/files"
)

// followEvery is the interval at which follow checks a file.
const followEvery = time.Second

// follow calls reload each time that a file differs from last, until ctx ends.
func follow(ctx context.Context, file string, last fileStamp, reload func()) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := stampOf(file); now != last {
			last = now
			reload()
		}
	}
}

// certificates are a listener's certificate and the authorities of its peers.
// They are reloaded when the files change, so that they can be renewed while the
// node runs. gRPC's own provider (certprovider/pemfile) is not used: when the files
// do not match, it writes the private key to its log; and it wants both files in
// one folder.
type certificates struct {
	cert, key, ca string // files; ca may be empty
	log           *slog.Logger

	mu     sync.Mutex
	read   [3]fileStamp
	shown  *tls.Certificate
	taking *x509.CertPool // nil: peers need no certificate
}

// fileStamp tells whether a file has changed.
type fileStamp struct {
	at   time.Time
	size int64
}

// stampOf is zero for a missing file, so that its creation is a change.
func stampOf(file string) (s fileStamp) {
	if info, err := os.Stat(file); err == nil {
		s.at, s.size = info.ModTime(), info.Size()
	}
	return s
}

func (c *certificates) stamps() [3]fileStamp {
	return [3]fileStamp{stampOf(c.cert), stampOf(c.key), stampOf(c.ca)}
}

// load reads the files.
func (c *certificates) load() error {
	at := c.stamps() // before reading: a later write is a change
	pair, err := readPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("--tls-cert: %w", err)
	}
	var pool *x509.CertPool
	if c.ca != "" {
		pem, err := files.Read(c.ca, files.CertificatesLimit)
		if err != nil {
			return fmt.Errorf("--tls-client-ca: %w", err)
		}
		pool = x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return fmt.Errorf("--tls-client-ca: no certificate in %s", c.ca)
		}
	}
	c.read, c.shown, c.taking = at, &pair, pool
	return nil
}

// readPair reads a certificate and its private key.
func readPair(cert, key string) (pair tls.Certificate, err error) {
	certificate, err := files.Read(cert, files.CertificatesLimit)
	if err != nil {
		return pair, err
	}
	private, err := files.Read(key, files.CertificatesLimit)
	if err != nil {
		return pair, err
	}
	return tls.X509KeyPair(certificate, private)
}

// current returns the certificates of the files. While they do not match, as
// when only one of them is renewed, it returns the last ones that did.
func (c *certificates) current() (*tls.Certificate, *x509.CertPool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stamps() != c.read {
		if err := c.load(); err != nil {
			c.log.Warn("changed certificates cannot be used yet", "err", err)
		} else {
			c.log.Info("certificates were read again", "cert", c.cert, "expires", c.shown.Leaf.NotAfter)
		}
	}
	return c.shown, c.taking
}

// config returns the TLS configuration for remote.Config. The authorities of peers
// also verify the actor processes that the node dials to answer them.
func (c *certificates) config() (*tls.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		ClientCAs:  c.taking, RootCAs: c.taking,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			shown, taking := c.current()
			config := &tls.Config{
				MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
				Certificates: []tls.Certificate{*shown}, ClientCAs: taking,
			}
			if taking != nil {
				config.ClientAuth = tls.RequireAndVerifyClientCert
			}
			return config, nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			shown, _ := c.current()
			return shown, nil
		},
	}, nil
}
