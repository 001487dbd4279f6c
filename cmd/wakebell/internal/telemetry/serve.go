package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
)

// Bounds of the servers of metrics and of health, whose ports may be open to a network:
// connections must not pile up.
const (
	headerLimit = 5 * time.Second  // in which a client must send its request headers
	readLimit   = 10 * time.Second // in which it must send the request
	writeLimit  = time.Minute      // for the answer, from its computation until it is read
	// idleLimit is longer than the usual intervals of scrapes and probes.
	idleLimit = 3 * time.Minute
)

func newServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: headerLimit, ReadTimeout: readLimit, WriteTimeout: writeLimit, IdleTimeout: idleLimit,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

const (
	// scrapesAtOnce bounds the scrapes that are answered at once.
	scrapesAtOnce = 4
)

// server serves metrics over HTTP.
type server struct {
	address string
	http    *http.Server
	ended   chan struct{}
}

// serve serves what the returned reader collects, with metrics of the Go runtime and
// of the process.
func serve(address string, log *slog.Logger) (sdk.Reader, *server, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	if err != nil {
		return nil, nil, fmt.Errorf("--metrics: %w", err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, nil, fmt.Errorf("--metrics: %w", err)
	}
	errorLog := slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: errorLog, ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesAtOnce,
	}))
	s := &server{
		address: listener.Addr().String(), ended: make(chan struct{}),
		http: newServer(mux, log),
	}
	go func() {
		defer close(s.ended)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics server failed", "err", err)
		}
	}()
	log.Info("serving metrics", "address", s.address)
	return reader, s, nil
}

func (s *server) stop(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close() // drops scrapes in flight
	}
	<-s.ended
	return err
}
