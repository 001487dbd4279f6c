package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificates are what a listener shows and whom it believes, read again when
// the files change, so that they are renewed while the node runs.
type certificates struct {
	cert, key, ca string // files; ca may be empty
	log           *slog.Logger

	mu     sync.Mutex
	read   [3]fileStamp
	shown  *tls.Certificate
	taking *x509.CertPool // nil: nobody is asked
}

// fileStamp tells whether a file is another than before.
type fileStamp struct {
	at   time.Time
	size int64
}

// stampOf is zero for a file that is away: it will be another later.
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
	at := c.stamps() // before: what is written meanwhile is read again
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("--tls-cert: %w", err)
	}
	var pool *x509.CertPool
	if c.ca != "" {
		pem, err := os.ReadFile(c.ca)
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

// current is what the files say, or said when they could be read last: one may
// be new and the other not yet.
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

// config is for remote.Config. Actors' processes that the node dials to answer
// them are believed by the authorities that peers are.
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
