package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

// echo is a Node that answers with an empty answer of the route.
type echo struct {
	t     testing.TB
	asked []proto.Message
}

func (e *echo) AdmitHTTP(r *http.Request) (context.Context, func(), error) {
	return r.Context(), func() {}, nil
}

func (e *echo) Room(context.Context, int) (func(), error) { return func() {}, nil }

func (e *echo) Answering(context.Context, proto.Message) (func(int), func(), error) {
	return func(int) {}, func() {}, nil
}

func (e *echo) MaxMessage() int { return 1 << 20 }

func (e *echo) NoteHTTP(text string) { require.Fail(e.t, text) }

func (e *echo) Do(_ context.Context, request proto.Message) (proto.Message, error) {
	e.asked = append(e.asked, request)
	return request, nil
}

// FuzzRequest sends any request. The answer is JSON, a problem if it failed, and what
// the node is asked is a message that can be encoded.
func FuzzRequest(f *testing.F) {
	for _, r := range routes {
		path := strings.NewReplacer("{topic}", "t", "{id}", "a%2Fb", "{name}", "n", "{gate}", "g", "{token}", "AAAA").Replace(r.pattern)
		f.Add(r.method, path, "timeout=1s", `{}`, "key")
	}
	for _, body := range []string{
		`{"id":"inv-42","in":"72h","body":{"cents":995}}`, `{"at":"2030-01-01T00:00:00Z","if_exists":"keep","headers":{"a":"b"}}`,
		`{"debounce":{"delay":"PT1M","limit":"1h"},"body_base64":"AAE="}`, `{"id":"x","id":"y"}`, `{"in":"P99999999999999999D"}`,
		`{"body":"\ud800","content_type":"text/plain"}`, `[[[[`, `{"timer_key":"k","once":"1h"} x`,
	} {
		f.Add("POST", "/v1/topics/t/timers", "", body, "")
	}
	f.Add("POST", "/v1/topics/t/timers:batch", "", `{"timers":[{"in":"1h"},{"body":null}]}`, "")
	f.Add("PUT", "/v1/schedules/n", "", `{"topic":"t","when":{"crontab":{"minute":"5"},"jitter":"1s"},"celery":{"args":[1],"kwargs":{}}}`, "")
	f.Add("GET", "/v1/topics/t/timers", "limit=5&running=true&due_before=2030-01-01T00:00:00Z&after=x", "", "")
	f.Add("POST", "/v1/queues/n/messages", "", `{"messages":[{"body":1,"key":"k"}],"window":"1h","cap":3}`, "k")
	f.Fuzz(func(t *testing.T, method, path, query, body, key string) {
		target := &url.URL{Path: path, RawQuery: query}
		if plain, err := url.PathUnescape(path); err == nil {
			target.Path, target.RawPath = plain, path
		}
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Method, r.URL = method, target
		r.Header.Set("Content-Type", jsonType)
		if key != "" {
			r.Header["Idempotency-Key"] = []string{key}
		}
		node, w := &echo{t: t}, httptest.NewRecorder()
		NewHandler(node).ServeHTTP(w, r)
		for _, m := range node.asked {
			_, err := proto.Marshal(m)
			require.NoError(t, err)
		}
		if path == docsPath {
			return
		}
		require.True(t, json.Valid(w.Body.Bytes()), w.Body.String())
		if w.Code >= http.StatusBadRequest {
			require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
			require.NotEqual(t, http.StatusInternalServerError, w.Code, w.Body.String())
		}
	})
}

// FuzzDuration reads any text. What is read is written as a text that is read alike.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{"72h", "PT72H", "P3DT4H5M6.5S", "P1W", "-1s", "P", "PT", "P1M", "PT1M1H", "P.D", "9999999999h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDuration(text)
		if err != nil {
			return
		}
		again, err := parseDuration(d.String())
		require.NoError(t, err)
		require.Equal(t, d, again)
	})
}
