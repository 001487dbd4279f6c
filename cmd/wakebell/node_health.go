package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	// healthHeaders is how long a prober may take to ask.
	healthHeaders = 5 * time.Second
	// healthShutdown is how long answers under way have at the end.
	healthShutdown = time.Second
)

// serveHealth serves health at addr until stop is called; an empty
// addr serves nothing. It is served from before the start until after the drain,
// so that whoever asks learns of both.
func serveHealth(addr string, health http.Handler, log *slog.Logger) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--health: %w", err)
	}
	server := &http.Server{
		Handler: health, ReadHeaderTimeout: healthHeaders,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("health is not served any more", "err", err)
		}
	}()
	log.Info("health is served", "addr", listener.Addr().String())
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), healthShutdown)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			_ = server.Close() // who still waits for an answer gets none
		}
		<-ended
	}, nil
}
