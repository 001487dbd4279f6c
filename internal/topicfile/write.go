package topicfile

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// Writer writes an export.
type Writer struct {
	w   *bufio.Writer
	out *json.Encoder
	end End
}

// NewWriter returns a writer of a file that begins with a topic.
func NewWriter(w io.Writer, t Topic) (*Writer, error) {
	buffered := bufio.NewWriterSize(w, 64<<10)
	out := json.NewEncoder(buffered)
	out.SetEscapeHTML(false)
	f := &Writer{w: buffered, out: out, end: End{Type: typeEnd}}
	t.Type, t.Version = typeTopic, Version
	return f, f.put(t)
}

func (f *Writer) put(line any) error {
	if err := f.out.Encode(line); err != nil {
		return fmt.Errorf("write the export: %w", err)
	}
	return nil
}

// Timer writes a timer.
func (f *Writer) Timer(t Timer) error {
	t.Type = typeTimer
	f.end.Timers++
	return f.put(t)
}

// Dead writes a dead letter.
func (f *Writer) Dead(d Dead) error {
	d.Type = typeDead
	f.end.Dead++
	return f.put(d)
}

// Mark writes the mark of an id.
func (f *Writer) Mark(m Mark) error {
	m.Type = typeMark
	f.end.Marks++
	return f.put(m)
}

// Counts returns how many lines of each type were written.
func (f *Writer) Counts() End { return f.end }

// End writes the last line, and all that is buffered.
func (f *Writer) End() error {
	err := f.put(f.end)
	if err == nil {
		err = f.w.Flush()
	}
	if err != nil {
		return fmt.Errorf("write the export: %w", err)
	}
	return nil
}
