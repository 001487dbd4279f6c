// Package httpapi has the messages of requests that only the HTTP listener has. The
// others are those of package messages.
package httpapi

//go:generate ../../../scripts/protoc.sh remote/internal/httpapi/http.proto
