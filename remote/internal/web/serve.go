package web

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/wakebell/wakebell/remote/internal/conn"
)

const (
	// headersWithin is how long the headers of a request may take to arrive.
	headersWithin = conn.BodyWithin
	// idleFor is how long a connection may be without a request.
	idleFor = 2 * time.Minute
	// maxHeader bounds the headers of a request, in bytes.
	maxHeader = 16 << 10
)

// Server serves a handler on a listener.
type Server struct {
	http    *http.Server
	serving sync.WaitGroup
}

// Serve serves the handler of a Node until Stop.
func Serve(l net.Listener, node Node, handler http.Handler) *Server {
	s := &Server{http: &http.Server{
		Handler: handler, ReadHeaderTimeout: headersWithin, IdleTimeout: idleFor, MaxHeaderBytes: maxHeader,
		ErrorLog:    log.New(noted{node}, "", 0),
		BaseContext: func(net.Listener) context.Context { return context.Background() }, //nolint:forbidigo // requests end with their connections
	}}
	s.serving.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			node.NoteHTTP("the HTTP listener ended: " + err.Error())
		}
	})
	return s
}

// Stop closes the listener and all connections.
func (s *Server) Stop() {
	_ = s.http.Close() // the listener is closed either way
	s.serving.Wait()
}

// noted logs the lines of the HTTP server.
type noted struct{ node Node }

// Write implements io.Writer.
func (n noted) Write(line []byte) (int, error) {
	const most = 512
	n.node.NoteHTTP(string(line[:min(len(line), most)]))
	return len(line), nil
}
