package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Version is the version of the format of the files.
const Version = 1

const (
	headerSize  = 48
	recordHead  = 12      // magic, length and checksum
	maxRecord   = 1 << 30 // bytes of a body; a command of Redis is at most 512 MiB
	kindLog     = 'L'
	kindSnap    = 'S'
	fileMagic   = "WAKEBELL"
	bodyMinimum = 25
)

var (
	recordMagic = []byte{0xf5, 'W', 'B', 0x1a}
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)

	errHeader = errors.New("the header is damaged")
	errBody   = errors.New("the commands of a record are damaged")
)

// Record is what one command, script or transaction changed: it is stored as a whole or
// not at all.
type Record struct {
	// Seq is the number of the record, without gaps.
	Seq uint64
	// Synced is the number of the last record that was on the disk for certain.
	Synced uint64
	// Clock is the time in Unix milliseconds that the commands saw.
	Clock    int64
	Commands [][]string
}

// header begins a file. The salt is part of each checksum, so that a payload that looks
// like a record, or a record of another file, is not taken for one.
type header struct {
	kind byte
	gen  uint64
	base uint64 // the number of the last record before the file
	salt [8]byte
}

func (h header) encode() []byte {
	b := make([]byte, headerSize)
	copy(b, fileMagic)
	b[8] = h.kind
	binary.LittleEndian.PutUint16(b[10:], Version)
	binary.LittleEndian.PutUint64(b[16:], h.gen)
	binary.LittleEndian.PutUint64(b[24:], h.base)
	copy(b[32:], h.salt[:])
	binary.LittleEndian.PutUint32(b[40:], crc32.Checksum(b[:40], castagnoli))
	return b
}

// decodeHeader reads a header. The version is checked before the checksum, because
// another version may have another one.
func decodeHeader(b []byte, kind byte) (header, error) {
	if len(b) < headerSize || string(b[:8]) != fileMagic || b[8] != kind {
		return header{}, errHeader
	}
	if v := binary.LittleEndian.Uint16(b[10:]); v > Version {
		return header{}, fmt.Errorf("%w: it has version %d, this program reads up to %d", ErrVersion, v, Version)
	}
	if crc32.Checksum(b[:40], castagnoli) != binary.LittleEndian.Uint32(b[40:]) {
		return header{}, errHeader
	}
	h := header{kind: kind, gen: binary.LittleEndian.Uint64(b[16:]), base: binary.LittleEndian.Uint64(b[24:])}
	copy(h.salt[:], b[32:])
	return h, nil
}

func (h header) sum(body []byte) uint32 {
	return crc32.Update(crc32.Checksum(h.salt[:], castagnoli), castagnoli, body)
}

// appendRecord appends the record as it is in a file.
func (h header) appendRecord(b []byte, r Record) []byte {
	start := len(b)
	b = append(b, recordMagic...)
	b = append(b, make([]byte, recordHead-len(recordMagic))...)
	b = binary.LittleEndian.AppendUint64(b, r.Seq)
	b = binary.LittleEndian.AppendUint64(b, r.Synced)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Clock)) //nolint:gosec // the same bits
	b = binary.AppendUvarint(b, uint64(len(r.Commands)))
	for _, args := range r.Commands {
		b = binary.AppendUvarint(b, uint64(len(args)))
		for _, arg := range args {
			b = binary.AppendUvarint(b, uint64(len(arg)))
			b = append(b, arg...)
		}
	}
	body := b[start+recordHead:]
	binary.LittleEndian.PutUint32(b[start+4:], uint32(len(body))) //nolint:gosec // below maxRecord
	binary.LittleEndian.PutUint32(b[start+8:], h.sum(body))
	return b
}

func decodeBody(body []byte) (Record, error) {
	if len(body) < bodyMinimum {
		return Record{}, errBody
	}
	r := Record{
		Seq:    binary.LittleEndian.Uint64(body),
		Synced: binary.LittleEndian.Uint64(body[8:]),
		Clock:  int64(binary.LittleEndian.Uint64(body[16:])), //nolint:gosec // the same bits
	}
	d := decoder{rest: body[24:]}
	n := d.count()
	r.Commands = make([][]string, 0, n)
	for range n {
		length := d.count()
		if length == 0 {
			return Record{}, errBody
		}
		args := make([]string, length)
		for i := range args {
			args[i] = d.text()
		}
		if d.bad {
			return Record{}, errBody
		}
		r.Commands = append(r.Commands, args)
	}
	if d.bad || len(d.rest) > 0 {
		return Record{}, errBody
	}
	return r, nil
}

// decoder reads numbers and texts until one does not fit.
type decoder struct {
	rest []byte
	bad  bool
}

// count returns a number that is at most that of the bytes that follow: each element
// takes one byte at least, so that no number makes it reserve much memory.
func (d *decoder) count() uint64 {
	n, size := binary.Uvarint(d.rest)
	if d.bad || size <= 0 || n > uint64(len(d.rest)-size) {
		d.bad = true
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) text() string {
	n := d.count()
	if d.bad {
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

// recordAt reads the record at the beginning of b, and the number of its bytes.
func (h header) recordAt(b []byte) (Record, int, error) {
	if len(b) < recordHead {
		return Record{}, 0, errShort
	}
	if !bytes.Equal(b[:4], recordMagic) {
		return Record{}, 0, errNoRecord
	}
	n := int64(binary.LittleEndian.Uint32(b[4:]))
	if n > maxRecord || n > int64(len(b)-recordHead) {
		return Record{}, 0, errShort
	}
	body := b[recordHead : recordHead+n]
	if h.sum(body) != binary.LittleEndian.Uint32(b[8:]) {
		return Record{}, 0, errSum
	}
	r, err := decodeBody(body)
	return r, recordHead + int(n), err
}
