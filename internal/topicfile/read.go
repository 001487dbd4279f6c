package topicfile

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"
)

// Bounds are the bounds of the fields of a file.
type Bounds struct {
	ID, Key, Error int   // bytes
	Payload        int   // bytes
	Count          int   // of claims and failures
	Number         int64 // of Timer.Number
	Shards         int
	LastInstant    time.Time
}

// lineExtra is the room of a line beyond the base64 of its payload.
const lineExtra = 64 << 10

// Line is one of the types of lines that a Reader returns: exactly one field is set.
type Line struct {
	Timer *Timer
	Dead  *Dead
	Mark  *Mark
	End   *End
}

// Reader reads an export.
type Reader struct {
	Topic Topic // the first line

	in     *bufio.Reader
	bounds Bounds
	line   int64
	seen   End
	ended  bool
}

// ErrCutOff is wrapped by the error of Next if the last line is missing.
var ErrCutOff = errors.New("the file ends without its last line: it was cut off")

// NewReader reads the first line of an export. Its error names the line and the field.
func NewReader(r io.Reader, b Bounds) (*Reader, error) {
	f := &Reader{in: bufio.NewReaderSize(r, 64<<10), bounds: b}
	text, err := f.read()
	if errors.Is(err, io.EOF) {
		return nil, f.fault("empty or cut off; want what topics export writes")
	}
	if err != nil {
		return nil, err
	}
	var kind struct {
		Type    string `json:"type"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(text, &kind); err != nil || kind.Type != typeTopic {
		return nil, f.fault("not the first line of an exported topic: want type %q", typeTopic)
	}
	if kind.Version != Version {
		return nil, f.fault("version: %d, want %d", kind.Version, Version)
	}
	if err := f.decode(text, &f.Topic); err != nil {
		return nil, err
	}
	if f.Topic.Shards < 1 || f.Topic.Shards > b.Shards {
		return nil, f.fault("shards: %d, want 1 to %d", f.Topic.Shards, b.Shards)
	}
	return f, nil
}

// At returns the number of the line that was read last; the first is 1.
func (f *Reader) At() int64 { return f.line }

// Next returns the next line; that with End is the last, and then comes [io.EOF]. The
// error names the line, the field and the bound. It wraps [ErrCutOff] if the last line is
// missing.
func (f *Reader) Next() (l Line, err error) {
	text, err := f.read()
	switch {
	case errors.Is(err, io.EOF) && f.ended:
		return l, io.EOF
	case errors.Is(err, io.EOF):
		return l, fmt.Errorf("line %d: %w", f.line, ErrCutOff)
	case err != nil:
		return l, err
	case f.ended:
		return l, f.fault("comes after the last line of the export, of type %q", typeEnd)
	}
	var kind struct {
		Type string `json:"type"`
	}
	if err := f.decode(text, &kind); err != nil {
		return l, err
	}
	switch kind.Type {
	case typeTimer:
		l.Timer = new(Timer)
		f.seen.Timers++
		err = f.checked(text, l.Timer, func() string { return l.Timer.fault(f.bounds) })
	case typeDead:
		l.Dead = new(Dead)
		f.seen.Dead++
		err = f.checked(text, l.Dead, func() string { return l.Dead.fault(f.bounds) })
	case typeMark:
		l.Mark = new(Mark)
		f.seen.Marks++
		err = f.checked(text, l.Mark, func() string { return l.Mark.fault(f.bounds) })
	case typeEnd:
		l.End, f.ended = new(End), true
		err = f.checked(text, l.End, func() string { return l.End.fault(f.seen) })
	default:
		err = f.fault("type: %.32q, want %q, %q, %q or %q", kind.Type, typeTimer, typeDead, typeMark, typeEnd)
	}
	return l, err
}

func (f *Reader) checked(text []byte, into any, fault func() string) error {
	if err := f.decode(text, into); err != nil {
		return err
	}
	if why := fault(); why != "" {
		return f.fault("%s", why)
	}
	return nil
}

// decode decodes a line. Its error names the field.
func (f *Reader) decode(text []byte, into any) error {
	err := json.Unmarshal(text, into)
	if err == nil {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return f.fault("not a JSON object: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		one, _ := json.Marshal(map[string]json.RawMessage{name: fields[name]}) // they were read
		if why := json.Unmarshal(one, reflect.New(reflect.TypeOf(into).Elem()).Interface()); why != nil {
			return f.fault("%s: %v", name, plain(why))
		}
	}
	return f.fault("%v", err)
}

// plain is an error of package json without the names of Go.
func plain(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("a value of another type: %s", wrong.Value)
	}
	return err
}

func (f *Reader) fault(format string, args ...any) error {
	return fmt.Errorf("line %d: "+format, append([]any{max(f.line, 1)}, args...)...)
}

// read returns the next line without its end, which may be missing.
func (f *Reader) read() ([]byte, error) {
	most := base64.StdEncoding.EncodedLen(f.bounds.Payload) + lineExtra
	var text []byte
	for {
		part, err := f.in.ReadSlice('\n')
		if len(text)+len(part) > most {
			f.line++
			return nil, f.fault("over %d bytes, want at most so many", most)
		}
		text = append(text, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("line %d: %w", f.line+1, err)
		case len(text) == 0:
			return nil, io.EOF
		case err == nil || f.whole(text):
			f.line++
			return bytes.TrimSpace(text), nil
		default: // the line was cut off
			return nil, io.EOF
		}
	}
}

// whole reports whether a line without an end is one.
func (f *Reader) whole(text []byte) bool { return json.Valid(text) }

func (t *Timer) fault(b Bounds) string {
	switch {
	case t.Unusable != "":
		return ""
	case t.ID == "" || len(t.ID) > b.ID:
		return fmt.Sprintf("id: %d bytes, want 1 to %d", len(t.ID), b.ID)
	case !utf8.ValidString(string(t.ID)):
		return "id: not valid UTF-8"
	case len(t.Key) > b.Key:
		return fmt.Sprintf("key: %d bytes, want at most %d", len(t.Key), b.Key)
	case t.At.After(b.LastInstant):
		return late("at", t.At, b)
	case t.Due.After(b.LastInstant):
		return late("due", t.Due, b)
	case t.Number < 0 || t.Number > b.Number:
		return fmt.Sprintf("number: %d, want 0 to %d", t.Number, b.Number)
	case t.Claims < 0 || t.Claims > b.Count:
		return fmt.Sprintf("claims: %d, want 0 to %d", t.Claims, b.Count)
	case t.Failures < 0 || t.Failures > b.Count:
		return fmt.Sprintf("failures: %d, want 0 to %d", t.Failures, b.Count)
	case len(t.Error) > b.Error:
		return fmt.Sprintf("error: %d bytes, want at most %d", len(t.Error), b.Error)
	case len(t.Payload) > b.Payload:
		return fmt.Sprintf("payload: %d bytes, want at most %d", len(t.Payload), b.Payload)
	default:
		return ""
	}
}

// late describes an instant that is after the last one.
func late(field string, at time.Time, b Bounds) string {
	return fmt.Sprintf("%s: %s, want at most %s", field, at.UTC().Format(time.RFC3339Nano), b.LastInstant.UTC().Format(time.RFC3339))
}

func (d *Dead) fault(b Bounds) string {
	switch {
	case d.Claims < 0 || d.Claims > b.Count:
		return fmt.Sprintf("claims: %d, want 0 to %d", d.Claims, b.Count)
	case d.Failures < 0 || d.Failures > b.Count:
		return fmt.Sprintf("failures: %d, want 0 to %d", d.Failures, b.Count)
	case len(d.Payload) > b.Payload:
		return fmt.Sprintf("payload: %d bytes, want at most %d", len(d.Payload), b.Payload)
	default:
		return ""
	}
}

func (m *Mark) fault(b Bounds) string {
	switch {
	case m.ID == "" || len(m.ID) > b.ID:
		return fmt.Sprintf("id: %d bytes, want 1 to %d", len(m.ID), b.ID)
	case m.At.IsZero():
		return "at: missing"
	case m.At.After(b.LastInstant):
		return late("at", m.At, b)
	case m.WindowUS < 1:
		return fmt.Sprintf("window_us: %d, want at least 1", m.WindowUS)
	case m.Expires.IsZero():
		return "expires: missing"
	default:
		return ""
	}
}

// fault compares the counts of the last line with the lines before it.
func (e *End) fault(seen End) string {
	if e.Timers != seen.Timers || e.Dead != seen.Dead || e.Marks != seen.Marks {
		return fmt.Sprintf("the file should have %d timers, %d dead letters and %d marks, and has %d, %d and %d: lines are missing",
			e.Timers, e.Dead, e.Marks, seen.Timers, seen.Dead, seen.Marks)
	}
	return ""
}
