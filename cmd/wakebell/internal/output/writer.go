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

// lockedWriter serializes the writes of several goroutines.
type lockedWriter struct {
	mu    sync.Mutex
	w     io.Writer
	ended bool
}

func NewLockedWriter(w io.Writer) *lockedWriter { return &lockedWriter{w: w} }

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return len(p), nil
	}
	return l.w.Write(p)
}

// End discards what is written from now on: a connection that is still being
// dialled may fail after the command has returned.
func (l *lockedWriter) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}
