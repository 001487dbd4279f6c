package web

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/conn"
	"github.com/wakebell/wakebell/remote/internal/httpapi"
	"github.com/wakebell/wakebell/remote/internal/peer"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// Node authenticates, bounds and carries out the requests.
type Node interface {
	// AdmitHTTP authenticates a request, and charges it to its caller until leave is
	// called.
	AdmitHTTP(r *http.Request) (ctx context.Context, leave func(), err error)
	// Room charges the bytes of a request to its caller until give is called. It waits
	// for room.
	Room(ctx context.Context, bytes int) (give func(), err error)
	// Answering reserves room for the answer of a request until done is called. It waits
	// for room. more charges an answer that is larger.
	Answering(ctx context.Context, request proto.Message) (more func(bytes int), done func(), err error)
	// MaxMessage is the largest request, in bytes.
	MaxMessage() int
	// Do carries out a request with the rights of the caller of ctx. Its errors are
	// those of gRPC.
	Do(ctx context.Context, request proto.Message) (proto.Message, error)
	// NoteHTTP logs a fault, at most a few lines a minute.
	NoteHTTP(text string)
}

// handler serves the API and its description.
type handler struct {
	node   Node
	origin *http.CrossOriginProtection
}

// NewHandler returns the handler of the API of a Node.
func NewHandler(node Node) http.Handler {
	return &handler{node: node, origin: http.NewCrossOriginProtection()}
}

// sendWithin is how long an answer may take to send. The caller is cut then.
const sendWithin = time.Minute

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	defer func() {
		if reason := recover(); reason != nil {
			h.node.NoteHTTP(fmt.Sprintf("a request panicked: %v\n%s", reason, debug.Stack()))
			newProblem("internal", "the request failed").write(w)
		}
	}()
	// A body that is not read, of a refused request, has no longer either. The deadlines of
	// the request before would end this one.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(conn.BodyWithin)) // a recorder has none
	h.sending(w)
	if err := h.origin.Check(r); err != nil {
		newProblem("forbidden", "a page of another origin sent the request").write(w)
		return
	}
	if h.describe(w, r) {
		return
	}
	ctx, leave, err := h.node.AdmitHTTP(r)
	if err != nil {
		(*route)(nil).problemOf(err).write(w)
		return
	}
	defer leave()
	h.serve(ctx, w, r)
}

// serve carries out a request whose caller is known.
func (h *handler) serve(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	route, path, methods := find(r.Method, r.URL.EscapedPath())
	if route == nil {
		p := newProblem("no_route", "see /openapi.json")
		if len(methods) > 0 {
			p = newProblem("method_not_allowed", "want one of "+strings.Join(methods, ", "))
			p.allow = methods
		}
		h.fail(w, p)
		return
	}
	request, done, err := h.read(ctx, route, path, w, r)
	defer done()
	if err != nil {
		h.fail(w, route.problemOf(err))
		return
	}
	more, sent, err := h.node.Answering(ctx, request)
	if err != nil {
		h.fail(w, route.problemOf(err))
		return
	}
	defer sent()
	answer, err := h.node.Do(ctx, request)
	if err != nil {
		h.fail(w, route.problemOf(err))
		return
	}
	h.answer(ctx, w, route, request, answer, more)
}

func (h *handler) fail(w http.ResponseWriter, p *problem) {
	h.sending(w)
	p.write(w)
}

// sending bounds the time that the answer takes to send.
func (h *handler) sending(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendWithin)) // a recorder has none
}

// answer sends an answer. What it hands out is given back if that fails.
func (h *handler) answer(ctx context.Context, w http.ResponseWriter, route *route, request, answer proto.Message, more func(int)) {
	h.sending(w)
	w.Header().Set("Content-Type", jsonType)
	status := http.StatusOK
	if _, later := answer.(*httpapi.SettleResponse); later { // with the next exchange of the topic
		status = http.StatusAccepted
	}
	err := ctx.Err()
	if err == nil {
		body := append(route.encode(answer), '\n')
		more(len(body))
		w.Header().Set("Content-Length", strconv.Itoa(len(body))) // or its end would be a write of its own, after the flush
		w.WriteHeader(status)
		_, err = w.Write(body)
	}
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if err == nil || route.undo == nil {
		return
	}
	for _, m := range route.undo(request, answer) {
		_, _ = h.node.Do(context.WithoutCancel(ctx), m) // else it expires
	}
}

// read returns the request of a route. done gives back what it was charged.
func (h *handler) read(ctx context.Context, route *route, path map[string]string, w http.ResponseWriter, r *http.Request) (m proto.Message, done func(), err error) {
	in := route.in.ProtoReflect().New()
	body, done, err := h.body(ctx, route, w, r)
	if err != nil {
		return nil, done, err
	}
	if len(body) > 0 {
		if err := route.decode(body, in); err != nil {
			return nil, done, err
		}
	}
	if err := route.query(r.URL.RawQuery, in); err != nil {
		return nil, done, err
	}
	for name, value := range path {
		if !utf8.ValidString(value) {
			return nil, done, wrong(name, "it is not UTF-8")
		}
		if f := in.Descriptor().Fields().ByTextName(name); f != nil {
			v, _ := parsed(f, value, name) // a text
			in.Set(f, v)
		}
	}
	key, err := idempotencyKey(route, r)
	if err != nil {
		return nil, done, err
	}
	m = in.Interface()
	if err := keyed(ctx, m, key); err != nil {
		return nil, done, err
	}
	setTrace(m, r)
	if route.request != nil {
		m = route.request(m, path)
	}
	return m, done, nil
}

// idempotencyKey returns the value of the header Idempotency-Key.
func idempotencyKey(route *route, r *http.Request) (string, error) {
	const name = "Idempotency-Key"
	values := r.Header.Values(name)
	switch {
	case len(values) == 0:
		return "", nil
	case !route.keyed():
		return "", wrong(name, "this request is idempotent, or cannot be: it takes no key")
	case len(values) > 1, values[0] == "", len(values[0]) > wire.MaxKey, !utf8.ValidString(values[0]):
		return "", wrong(name, "want one of 1 to %d bytes of UTF-8", wire.MaxKey)
	}
	return values[0], nil
}

// keyed sets the idempotency key of a request.
func keyed(ctx context.Context, m proto.Message, key string) error {
	if key == "" {
		return nil
	}
	if p, ok := m.(*messages.PublishRequest); ok {
		return setTails(p, peer.CallerOf(ctx).Owner, key)
	}
	fields := m.ProtoReflect()
	fields.Set(fields.Descriptor().Fields().ByName(keyField), protoreflect.ValueOfString(key))
	return nil
}

// setTrace passes on the span of the caller, to requests that have one.
func setTrace(m proto.Message, r *http.Request) {
	fields := m.ProtoReflect()
	f := fields.Descriptor().Fields().ByName("trace")
	if f == nil || r.Header.Get("traceparent") == "" {
		return
	}
	trace := fields.Mutable(f).Map()
	for _, name := range []string{"traceparent", "tracestate"} {
		if value := r.Header.Get(name); value != "" && utf8.ValidString(value) {
			trace.Set(protoreflect.ValueOfString(name).MapKey(), protoreflect.ValueOfString(value))
		}
	}
}
