package main

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
)

// Any timer is printed as valid JSON, with its body in one form.
func FuzzContent(f *testing.F) {
	f.Add("application/json", []byte(`{"a": 1}`))
	f.Add("application/json; charset=utf-8", []byte(`{"a": `))
	f.Add("text/plain", []byte("a\xff\x00"))
	f.Add("text/; x", []byte("<&>\u2028"))
	f.Add("", []byte(nil))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		c := newContent(wakebell.Content{ContentType: contentType, Body: body})
		line, err := jsonLine(c)
		require.NoError(t, err)
		require.True(t, json.Valid(line), "%q", line)
		require.NotEqual(t, c.Body == nil, c.BodyBase64 == nil)
		require.NotEmpty(t, c.rows())
	})
}

func FuzzParseServers(f *testing.F) {
	f.Add("redis", "", "user:secret@host:6379/0")
	f.Add("rediss", clusterSuffix, "host:7000,host2?addr=host3:1")
	f.Add("redis", sentinelSuffix, ":p@[::1],a,b@c/mymaster/0")
	f.Add("redis", clusterSuffix, ",,@,")
	f.Fuzz(func(t *testing.T, base, kind, rest string) {
		u, err := parseServers(base, kind, rest)
		if err != nil {
			return
		}
		_, err = url.Parse(u.String())
		if kind == "" && err != nil {
			return // net/url writes some URLs in a form that it cannot parse
		}
		_ = checkParameters(u.Query()) // an error is permitted, a panic is not
	})
}
