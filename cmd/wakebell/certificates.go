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
	read   stamps
	shown  *tls.Certificate
	taking *x509.CertPool // nil: nobody is asked
}

// stamps tell whether files are others than before.
type stamps [3]struct {
	at   time.Time
	size int64
}

func (c *certificates) stamps() (s stamps) {
	for i, file := range []string{c.cert, c.key, c.ca} {
		if info, err := os.Stat(file); err == nil { // one that is away now will be another later
			s[i].at, s[i].size = info.ModTime(), info.Size()
		}
	}
	return s
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
