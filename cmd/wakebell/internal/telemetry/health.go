package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/pflag"
)

// healthShutdown bounds the shutdown of the server.
const healthShutdown = time.Second

// HealthFlag adds --health, the address for ServeHealth.
func HealthFlag(flags *pflag.FlagSet, address *string) {
	flags.StringVar(address, "health", "", "`address` to serve /livez and /readyz over HTTP, as 127.0.0.1:8080; empty: none")
}

// ServeHealth serves health at addr until stop is called; an empty addr serves
// nothing. Callers serve it from before the start until after the drain, so that
// probes see both.
func ServeHealth(addr string, health http.Handler, log *slog.Logger) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--health: %w", err)
	}
	server := newServer(health, log)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("health server failed", "err", err)
		}
	}()
	log.Info("serving health checks", "address", listener.Addr().String())
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), healthShutdown)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			_ = server.Close() // drops requests in flight
		}
		<-ended
	}, nil
}
