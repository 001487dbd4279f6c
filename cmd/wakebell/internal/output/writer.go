package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrStdout means that stdout cannot be written, as when its reader has exited.
var ErrStdout = errors.New("write to stdout")

// JSONLine encodes v as one line, without HTML escaping. Characters that can affect
// a terminal are escaped.
func JSONLine(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return escapeJSON(buf.Bytes()), nil
}

// LockedWriter serializes the writes of several goroutines.
type LockedWriter struct {
	mu    sync.Mutex
	w     io.Writer
	ended bool
}

// NewLockedWriter returns a LockedWriter to w.
func NewLockedWriter(w io.Writer) *LockedWriter { return &LockedWriter{w: w} }

// Write writes p, unless the writer has ended.
func (l *LockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return len(p), nil
	}
	return l.w.Write(p)
}

// End discards what is written from now on: a connection that is still being
// dialled may fail after the command has returned.
func (l *LockedWriter) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}
