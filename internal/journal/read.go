package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// reader reads the records of a file one after the other.
type reader struct {
	header
	name string
	file File
	size int64
	off  int64 // of the next record
	in   *bufio.Reader
	body []byte
}

// openReader opens a file and reads its header. The file is nil if it cannot be opened.
func openReader(fs FS, name string, kind byte) (*reader, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	r := &reader{name: name, file: f}
	if r.size, err = f.Size(); err != nil {
		return r, err
	}
	head := make([]byte, headerSize)
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return r, err
	}
	r.header, err = decodeHeader(head, kind)
	if errors.Is(err, ErrVersion) {
		return r, fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		return r, r.damaged(0, err)
	}
	r.seek(headerSize)
	return r, nil
}

func (r *reader) damaged(off int64, err error) error {
	return &DamageError{File: r.name, Offset: off, Err: err}
}

func (r *reader) seek(off int64) {
	r.off = off
	r.in = bufio.NewReaderSize(io.NewSectionReader(r.file, off, math.MaxInt64-off), 1<<16)
}

// next returns the next record; io.EOF at the end of the file; a *DamageError for what is
// no record, and then the position stays.
func (r *reader) next() (Record, error) {
	if r.off >= r.size {
		return Record{}, io.EOF
	}
	var head [recordHead]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return Record{}, r.failed(err)
	}
	if !bytes.Equal(head[:4], recordMagic) {
		return Record{}, r.damaged(r.off, errNoRecord)
	}
	n := int64(binary.LittleEndian.Uint32(head[4:]))
	if n > maxRecord || n > r.size-r.off-recordHead {
		return Record{}, r.damaged(r.off, errShort)
	}
	if int64(cap(r.body)) < n {
		r.body = make([]byte, n)
	}
	body := r.body[:n]
	if _, err := io.ReadFull(r.in, body); err != nil {
		return Record{}, r.failed(err)
	}
	if r.sum(body) != binary.LittleEndian.Uint32(head[8:]) {
		return Record{}, r.damaged(r.off, errSum)
	}
	rec, err := decodeBody(body)
	if err != nil {
		return Record{}, r.damaged(r.off, err)
	}
	r.off += recordHead + n
	return rec, nil
}

// failed classifies an error of reading: an error of the disk is no damage.
func (r *reader) failed(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.damaged(r.off, errShort)
	}
	return err
}

// resume looks for readable records behind the position, until visit returns false for
// one. The position is then that record, or else the end of the file.
func (r *reader) resume(visit func(Record) bool) error {
	rest := make([]byte, r.size-r.off)
	if n, err := r.file.ReadAt(rest, r.off); err != nil && !errors.Is(err, io.EOF) {
		return err
	} else if n < len(rest) {
		rest = rest[:n]
	}
	for at := 1; at < len(rest); {
		i := bytes.Index(rest[at:], recordMagic)
		if i < 0 {
			break
		}
		at += i
		rec, n, err := r.recordAt(rest[at:])
		if err != nil {
			at++
			continue
		}
		if !visit(rec) {
			r.seek(r.off + int64(at))
			return nil
		}
		at += n
	}
	r.seek(r.size)
	return nil
}
