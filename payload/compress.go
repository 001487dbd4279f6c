package payload

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/wakebell/wakebell/internal/argument"
)

// Compress returns a Codec, named gzip, that compresses bodies of at least minBytes, with
// gzip at its fastest level, where that makes them smaller. minBytes is at least 1;
// bodies of less than about 200 bytes rarely get smaller.
//
// Put it before Encrypt: encrypted bytes cannot be compressed. The length of a body that
// is compressed and then encrypted depends on its content; do not compress bodies that
// join a secret with text that an attacker chooses.
func Compress(minBytes int) Codec { return compressor{minBytes} }

type compressor struct{ least int }

func (compressor) Name() string { return "gzip" }

func (c compressor) validate() error {
	if c.least < 1 {
		return argument.Invalid("Compress", "%d bytes, want at least 1", c.least)
	}
	return nil
}

// gzipWriters pools writers, because each has tables of about 1 MiB.
var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is valid
	return w
}}

var gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}

func (c compressor) Encode(_ context.Context, _ Item, body []byte) ([]byte, Step, error) {
	if len(body) < c.least {
		return body, Step{Skipped: true}, nil
	}
	w := gzipWriters.Get().(*gzip.Writer) // nothing else is put there
	defer gzipWriters.Put(w)
	var out bytes.Buffer
	out.Grow(len(body) / 2)
	w.Reset(&out)
	if _, err := w.Write(body); err != nil {
		return nil, Step{}, err
	}
	if err := w.Close(); err != nil {
		return nil, Step{}, err
	}
	if out.Len() >= len(body) {
		return body, Step{Skipped: true}, nil
	}
	return out.Bytes(), Step{Params: map[string]string{"size": strconv.Itoa(len(body))}}, nil
}

// Decode stops at the limit, even if the stored size is larger.
func (c compressor) Decode(_ context.Context, _ Item, s Step, body []byte, limit int) ([]byte, error) {
	size, err := strconv.Atoi(s.Params["size"])
	if err != nil || size < 0 {
		return nil, fmt.Errorf("%w: size %.40q", ErrCorrupt, s.Params["size"])
	}
	if size > limit {
		return nil, tooLarge(limit)
	}
	in := bytes.NewReader(body)
	r := gzipReaders.Get().(*gzip.Reader) // nothing else is put there
	defer gzipReaders.Put(r)
	if err := r.Reset(in); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	r.Multistream(false)
	var out bytes.Buffer
	out.Grow(min(size, 64*len(body)) + bytes.MinRead) // a lie about the size allocates little
	if _, err := out.ReadFrom(io.LimitReader(r, int64(size)+1)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if out.Len() != size || in.Len() > 0 {
		return nil, fmt.Errorf("%w: it does not have the %d bytes of its mark", ErrCorrupt, size)
	}
	return out.Bytes(), nil
}
