package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/conn"
)

// bodyRate is how many bytes of a body must arrive each second.
const bodyRate = 256 << 10

// body reads the body of a request. A large one is charged to its caller before it is
// read. done gives back the charge.
func (h *handler) body(ctx context.Context, route *route, w http.ResponseWriter, r *http.Request) (data []byte, done func(), err error) {
	nothing := func() {}
	size, most := r.ContentLength, int64(h.node.MaxMessage())
	if size == 0 || r.Body == nil || r.Body == http.NoBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // of the body; a caller that waits sends nothing
		return nil, nothing, nil
	}
	if !route.hasBody() {
		return nil, nothing, wrong("", "a %s takes no body", r.Method)
	}
	if kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != jsonType || (parameters["charset"] != "" && parameters["charset"] != "utf-8" && parameters["charset"] != "UTF-8") {
		p := newProblem("unsupported_media_type", "want Content-Type: application/json")
		p.Field = "Content-Type"
		return nil, nothing, p
	}
	if r.Header.Get("Content-Encoding") != "" {
		p := newProblem("unsupported_media_type", "want no Content-Encoding")
		p.Field = "Content-Encoding"
		return nil, nothing, p
	}
	if size > most {
		return nil, nothing, tooLarge(most)
	}
	charged := size
	if size < 0 { // it ends when the caller says so
		charged = most
	}
	if done, err = h.node.Room(ctx, int(charged)); err != nil {
		return nil, nothing, err
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(conn.BodyWithin + time.Duration(charged/bodyRate)*time.Second)) // a recorder has none
	data, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, done, tooLarge(most)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.Header().Set("Connection", "close")
		return nil, done, newProblem("timeout", "the body did not arrive in time")
	}
	if err != nil {
		return nil, done, wrong("", "the body ends too early")
	}
	return data, done, nil
}

func tooLarge(most int64) error {
	return newProblem("too_large", "a body may have "+strconv.FormatInt(most, 10)+" bytes")
}

// query sets the fields of a message that the query has: of a request without a body
// all, and of every request its timeout.
func (r *route) query(raw string, m protoreflect.Message) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return wrong("", "the query cannot be read")
	}
	for name, all := range values {
		f := m.Descriptor().Fields().ByTextName(name)
		ok := f != nil && (string(f.Name()) == "timeout" || (!r.hasBody() && r.shown(f) && !f.IsList() && !f.IsMap()))
		switch {
		case !ok:
			return wrong(clip(name), "there is no such parameter")
		case len(all) != 1:
			return wrong(name, "it is there twice")
		case !utf8.ValidString(all[0]):
			return wrong(name, "it is not UTF-8")
		}
		v, err := parsed(f, all[0], name)
		if err != nil {
			return err
		}
		m.Set(f, v)
	}
	return nil
}

// tailDigits is how many hexadecimal digits identify a message that is sent again.
const tailDigits = 20

// setTails makes a repeated request of a principal publish the same messages. What a message
// contains counts too: another one under the same key is no repetition.
func setTails(m *messages.PublishRequest, principal, key string) error {
	for i, each := range m.GetMessages() {
		each.Tail = ""
		content, err := proto.MarshalOptions{Deterministic: true}.Marshal(each)
		if err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		whole := append([]byte(principal+"\x00"+m.GetName()+"\x00"+key+"\x00"+strconv.Itoa(i)+"\x00"), content...)
		sum := sha256.Sum256(whole)
		each.Tail = hex.EncodeToString(sum[:])[:tailDigits]
	}
	return nil
}
