// Package webserver serves the dashboard over HTTP, for the commands dash and node.
package webserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/dashboard"
)

const (
	headerLimit = 5 * time.Second
	bodyLimit   = time.Minute
	idleLimit   = 2 * time.Minute
	// stopLimit bounds requests in flight at the end; streams end at once.
	stopLimit = 5 * time.Second
)

// Names are the names of the flags in a command, for errors.
type Names struct{ Address, Users, Cert, Key, Insecure string }

// Options are what the flags of a command say about the server.
type Options struct {
	Names                    Names
	Address, Path            string
	Users, Cert, Key         string // files; may be empty
	Writable, Hide, Insecure bool
	TraceURL                 string
	Origins                  []string
}

// Config returns the configuration of the dashboard, with the users of the file. It
// rejects an address that would serve other machines unsafely.
func (o *Options) Config() (dashboard.Config, error) {
	cfg := dashboard.Config{
		Path: o.Path, Writable: o.Writable, HidePayloads: o.Hide, TraceURL: o.TraceURL, TrustedOrigins: o.Origins,
	}
	if o.Users != "" {
		file, err := os.Open(o.Users)
		if err != nil {
			return cfg, fmt.Errorf("--%s: %w", o.Names.Users, err)
		}
		defer func() { _ = file.Close() }() // it is only read
		if cfg.Credentials, err = dashboard.ReadCredentials(file); err != nil {
			return cfg, fmt.Errorf("--%s: %w", o.Names.Users, err)
		}
	}
	return cfg, o.Check()
}

// Check rejects an address that would serve other machines unsafely.
func (o *Options) Check() error {
	n := o.Names
	if (o.Cert == "") != (o.Key == "") {
		return cli.Usagef("--%s and --%s go together", n.Cert, n.Key)
	}
	host, _, err := net.SplitHostPort(o.Address)
	if err != nil {
		return cli.Usagef("--%s: %q, want host:port", n.Address, o.Address)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	switch {
	case o.Users == "":
		return cli.Usagef("--%s %s serves other machines: give --%s", n.Address, o.Address, n.Users)
	case o.Cert == "" && !o.Insecure:
		return cli.Usagef("--%s %s serves other machines: give --%s and --%s, or --%s behind a proxy with TLS", n.Address, o.Address, n.Cert, n.Key, n.Insecure)
	default:
		return nil
	}
}

// Start serves a dashboard. It calls failed if the server ends before stop is called,
// which ends it and closes the dashboard.
func Start(ctx context.Context, o *Options, d *dashboard.Dashboard, log *slog.Logger, failed func(error)) (stop func() error, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		d.Close()
		return nil, fmt.Errorf("--%s: %w", o.Names.Address, err)
	}
	server := &http.Server{
		Handler: d, ReadHeaderTimeout: headerLimit, ReadTimeout: bodyLimit, IdleTimeout: idleLimit,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	server.RegisterOnShutdown(d.Close)
	scheme, serve := "http", func() error { return server.Serve(listener) }
	if o.Cert != "" {
		scheme, serve = "https", func() error { return server.ServeTLS(listener, o.Cert, o.Key) }
	}
	log.InfoContext(ctx, "dashboard runs", "address", scheme+"://"+listener.Addr().String()+strings.TrimRight(o.Path, "/")+"/", "writable", o.Writable)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			failed(fmt.Errorf("serve the dashboard: %w", err))
		}
	}()
	return func() error {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
		defer cancel()
		err := server.Shutdown(grace)
		<-ended
		d.Close()
		log.InfoContext(grace, "dashboard ended")
		return err
	}, nil
}
