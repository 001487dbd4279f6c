package conn

import (
	"encoding/binary"
	"fmt"
)

// The HTTP/2 frames that matter here, see RFC 9113.
const (
	frameData, frameHeaders, frameReset = 0, 1, 3
	flagEndStream, flagPadded           = 1, 8
	frameHeader                         = 9
	prefaceBytes                        = 24
)

// frameSink receives the frames that a frameReader finds.
type frameSink interface {
	begin(*frameReader) error
	data(stream uint32, p []byte)
}

// frameReader finds the HTTP/2 frames in a stream of bytes.
type frameReader struct {
	skip         int // bytes of the preface that are left, before the first frame
	head         [frameHeader]byte
	have         int    // bytes of the head that have been read
	left, pad    uint32 // of the payload; bytes of padding at its end
	padded       bool   // the length of the padding comes next
	kind, flags  byte
	stream, size uint32
}

func (f *frameReader) read(p []byte, to frameSink) error {
	if f.skip > 0 {
		n := min(f.skip, len(p))
		f.skip, p = f.skip-n, p[n:]
	}
	for len(p) > 0 {
		if f.have < frameHeader {
			n := copy(f.head[f.have:], p)
			f.have, p = f.have+n, p[n:]
			if f.have == frameHeader {
				f.start()
				if err := to.begin(f); err != nil {
					return fmt.Errorf("frame of %d bytes: %w", f.size, err)
				}
			}
		} else {
			n := min(uint32(len(p)), f.left) //nolint:gosec // a read is small
			f.payload(p[:n], to)
			p = p[n:]
		}
		if f.have == frameHeader && f.left == 0 {
			f.have = 0
		}
	}
	return nil
}

func (f *frameReader) start() {
	f.size = uint32(f.head[0])<<16 | uint32(f.head[1])<<8 | uint32(f.head[2])
	f.kind, f.flags = f.head[3], f.head[4]
	f.stream = binary.BigEndian.Uint32(f.head[5:]) & (1<<31 - 1)
	f.left, f.pad, f.padded = f.size, 0, f.kind == frameData && f.flags&flagPadded != 0
}

// payload processes the next part of a frame's payload.
func (f *frameReader) payload(p []byte, to frameSink) {
	f.left -= uint32(len(p)) //nolint:gosec // at most left
	if f.kind != frameData {
		return
	}
	if f.padded && len(p) > 0 {
		f.pad, f.padded, p = uint32(p[0]), false, p[1:]
	}
	if over := int64(f.pad) - int64(f.left); over > 0 { // the end of p is padding
		p = p[:max(int64(len(p))-over, 0)]
	}
	to.data(f.stream, p)
}
