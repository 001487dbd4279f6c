package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell/messages"
)

// problem is the body of an answer that says what went wrong, as RFC 9457 defines it.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Code is the code of the gateway's Error in lower case, or one of those of HTTP.
	Code string `json:"code"`
	// Field is the field, parameter or header that is wrong.
	Field string `json:"field,omitempty"`

	allow      []string // methods
	retryAfter int      // seconds; 0: none
}

// kind is a code of problems.
type kind struct {
	status     int
	title      string
	retryAfter int
}

// kinds are the codes of the gateway, and those that only HTTP has.
var kinds = map[string]kind{
	"invalid":         {http.StatusBadRequest, "A part of the request is invalid. Nothing was written.", 0},
	"not_found":       {http.StatusNotFound, "The timer does not exist.", 0},
	"unavailable":     {http.StatusServiceUnavailable, "Redis or the node is not available. The outcome is unknown.", 1},
	"memory_full":     {http.StatusInsufficientStorage, "Redis has reached its memory limit. Nothing was written.", 10},
	"wrong_type":      {http.StatusConflict, "A key of the topic has another type. Nothing was written.", 0},
	"deadline":        {http.StatusGatewayTimeout, "The timeout passed. The outcome is unknown.", 0},
	"overloaded":      {http.StatusTooManyRequests, "A bound of the node is reached. Nothing was done.", 1},
	"draining":        {http.StatusServiceUnavailable, "The node is stopping, or has not started. Nothing was done.", 1},
	"internal":        {http.StatusInternalServerError, "The node failed. The outcome is unknown.", 0},
	"conflict":        {http.StatusConflict, "It is held by another owner, or was ended before.", 0},
	"lease_lost":      {http.StatusConflict, "The lease has ended. Nothing was done.", 0},
	"no_schedule":     {http.StatusNotFound, "The recurring schedule does not exist.", 0},
	"gate_held":       {http.StatusConflict, "The gate is held.", 0},
	"turn_lost":       {http.StatusConflict, "The turn does not exist, or is lost.", 0},
	"gates_closed":    {http.StatusServiceUnavailable, "The gates are closed because the node is stopping.", 1},
	"fence_stale":     {http.StatusPreconditionFailed, "The resource has seen a newer fencing token.", 0},
	"fence_regressed": {http.StatusInternalServerError, "The resource has seen a newer fencing token: Redis has lost data.", 0},
	"denied":          {http.StatusInternalServerError, "Redis denies the node a key or a command.", 0},
	"channel_denied":  {http.StatusInternalServerError, "Redis denies the node a channel.", 0},
	"unsupported":     {http.StatusNotImplemented, "The Redis of the node cannot store timers.", 0},
	"forbidden":       {http.StatusForbidden, "The caller does not have the right. Nothing was done.", 0},
	"fence_unknown":   {http.StatusPreconditionFailed, "No turn has had the fencing token.", 0},
	"gate_exhausted":  {http.StatusInsufficientStorage, "The gate has no fencing tokens left.", 0},
	"too_large":       {http.StatusRequestEntityTooLarge, "The request or its payload is larger than the limit of the node.", 0},

	"unauthenticated":        {http.StatusUnauthorized, "The request has no valid credentials.", 0},
	"no_route":               {http.StatusNotFound, "There is no such path.", 0},
	"method_not_allowed":     {http.StatusMethodNotAllowed, "The path does not have this method.", 0},
	"unsupported_media_type": {http.StatusUnsupportedMediaType, "The body must be JSON.", 0},
	"timeout":                {http.StatusRequestTimeout, "The request did not arrive in time.", 0},
}

func newProblem(code, detail string) *problem {
	k, ok := kinds[code]
	if !ok {
		code = "internal"
		k = kinds[code]
	}
	return &problem{Type: "/docs#" + code, Title: k.title, Status: k.status, Detail: detail, Code: code, retryAfter: k.retryAfter}
}

// problemOf returns the problem for an error of the Node, or of the translation.
func (r *route) problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if field, ok := errors.AsType[*fieldError](err); ok {
		p := newProblem("invalid", field.Error())
		p.Field = field.field
		return p
	}
	s := status.Convert(err)
	for _, detail := range s.Details() {
		if m, ok := detail.(*messages.Error); ok {
			p := newProblem(strings.ToLower(strings.TrimPrefix(m.GetCode().String(), "CODE_")), m.GetMessage())
			if m.GetCode() == messages.Code_CODE_INVALID && r != nil {
				p.Field = fieldIn(m.GetMessage(), r.in.ProtoReflect().Descriptor())
			}
			return p
		}
	}
	code := map[codes.Code]string{
		codes.Unauthenticated: "unauthenticated", codes.PermissionDenied: "forbidden", codes.ResourceExhausted: "overloaded",
		codes.Unavailable: "unavailable", codes.InvalidArgument: "invalid", codes.DeadlineExceeded: "deadline",
	}[s.Code()]
	return newProblem(code, s.Message())
}

// Error implements error.
func (p *problem) Error() string { return p.Detail }

// fieldIn returns the field of a message that a text of the gateway names: its texts are
// parts with a colon between them, and one of these is the field.
func fieldIn(text string, of protoreflect.MessageDescriptor) string {
	for part := range strings.SplitSeq(text, ": ") {
		name, _, _ := strings.Cut(part, "[")
		if hasField(of, strings.ToLower(name), 0) {
			return strings.ToLower(part)
		}
	}
	return ""
}

func hasField(of protoreflect.MessageDescriptor, name string, depth int) bool {
	if of.Fields().ByTextName(name) != nil {
		return true
	}
	for i := range of.Fields().Len() {
		if f := of.Fields().Get(i); f.Message() != nil && !f.IsMap() && depth < 2 && hasField(f.Message(), name, depth+1) {
			return true
		}
	}
	return false
}

func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="wakebell"`)
	}
	if len(p.allow) > 0 {
		h.Set("Allow", strings.Join(p.allow, ", "))
	}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	h.Set("Content-Type", "application/problem+json")
	body, err := json.Marshal(p)
	if err != nil { // texts and a number never fail
		body = []byte("{}")
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // the caller has gone
}
