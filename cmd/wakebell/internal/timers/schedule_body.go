package timers

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

// drafter returns the function that makes the i-th timer.
func (f *scheduleFlags) drafter(stdin io.Reader) (func(i int) wakebell.Draft, error) {
	if f.count < 1 {
		return nil, cli.Usagef("--count: %d, want at least 1", f.count)
	}
	if latest := f.in.Seconds() + float64(f.count-1)*f.spacing.Seconds(); f.spacing != 0 && math.Abs(latest) > (1<<62)/1e9 {
		return nil, cli.Usagef("--spacing: %v between %d timers: the last would be due in over 146 years", f.spacing, f.count)
	}
	for _, flag := range []string{"debounce", "once"} {
		if f.given(flag) && !f.given("id") {
			return nil, cli.Usagef("--%s without --id: calls are compared by the id, and without one each schedules a new timer", flag)
		}
	}
	options, err := f.options()
	if err != nil {
		return nil, err
	}
	when, err := f.when()
	if err != nil {
		return nil, err
	}
	switch {
	case !f.given("debounce"):
	case f.in <= 0:
		return nil, cli.Usagef("--debounce needs --in above 0: for how long each call postpones the timer")
	default:
		when = func(time.Duration) wakebell.ScheduleOption { return wakebell.Debounce(f.in, f.debounce) }
	}
	body, err := f.body(stdin)
	if err != nil {
		return nil, err
	}
	return func(i int) wakebell.Draft {
		opts := append(options[:len(options):len(options)], when(time.Duration(i)*f.spacing))
		switch {
		case f.given("id") && f.given("count"):
			opts = append(opts, wakebell.ID(fmt.Sprintf("%s-%d", f.id, i)))
		case f.given("id"):
			opts = append(opts, wakebell.ID(f.id))
		}
		return body(opts)
	}, nil
}

func (f *scheduleFlags) options() ([]wakebell.ScheduleOption, error) {
	var options []wakebell.ScheduleOption
	if len(f.after) > 0 {
		parts := make([]wakebelltype.Part, len(f.after))
		for i, text := range f.after {
			topic, id, ok := strings.Cut(text, "/")
			if !ok || topic == "" || id == "" {
				return nil, cli.Usagef("--after %q: want topic/id", text)
			}
			parts[i] = wakebelltype.Part{Topic: topic, ID: id}
		}
		options = append(options, wakebell.After(parts...))
	}
	for _, header := range f.headers {
		key, value, ok := strings.Cut(header, "=")
		if !ok {
			return nil, cli.Usagef("--header: %q, want key=value", header)
		}
		options = append(options, wakebell.Header(key, value))
	}
	if f.given("correlation-id") {
		options = append(options, wakebell.CorrelationID(f.correlationID))
	}
	switch f.ifExists.String() {
	case "keep":
		options = append(options, wakebell.IfExists(wakebelltype.PolicyKeep))
	case "earliest":
		options = append(options, wakebell.IfExists(wakebelltype.PolicyEarliest))
	}
	if f.given("key") {
		options = append(options, wakebell.Key(f.key))
	}
	if f.given("once") {
		options = append(options, wakebell.Once(f.once))
	}
	if f.given("expire-after") {
		options = append(options, wakebell.ExpireAfter(f.expireAfter))
	}
	return options, nil
}

// body returns the function that makes a draft with the body of the flags.
func (f *scheduleFlags) body(stdin io.Reader) (func([]wakebell.ScheduleOption) wakebell.Draft, error) {
	var raw []byte
	var err error
	switch {
	case f.given("json"):
		var compact bytes.Buffer
		if err := cli.CheckJSON(f.json); err != nil {
			return nil, err
		}
		if err := json.Compact(&compact, []byte(f.json)); err != nil {
			return nil, cli.Usagef("--json: %v", err)
		}
		return drafts(f.topic, json.RawMessage(compact.Bytes())), nil
	case f.given("text"):
		if !utf8.ValidString(f.text) {
			return nil, cli.Usagef("--text: not valid UTF-8; --hex takes any bytes")
		}
		return drafts(f.topic, f.text), nil
	case f.given("hex"):
		if raw, err = hex.DecodeString(f.hex); err != nil {
			return nil, cli.Usagef("--hex: %v", err)
		}
	case f.given("file"):
		if raw, err = readBody(f.file, stdin); err != nil {
			return nil, err
		}
	}
	return func(opts []wakebell.ScheduleOption) wakebell.Draft {
		return wakebell.NewTopic[[]byte](f.topic).Draft(raw, append(opts, wakebell.ContentType(f.contentType))...)
	}, nil
}

func drafts[T any](topic string, body T) func([]wakebell.ScheduleOption) wakebell.Draft {
	return func(opts []wakebell.ScheduleOption) wakebell.Draft {
		return wakebell.NewTopic[T](topic).Draft(body, opts...)
	}
}

// readBody reads a file, at most one byte more than a timer can hold.
func readBody(name string, stdin io.Reader) ([]byte, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("--file: %w", err)
		}
		defer func() { _ = file.Close() }() // opened for reading only
		stdin = file
	}
	body, err := io.ReadAll(io.LimitReader(stdin, wakebell.DefaultPayloadLimit+1))
	if err != nil {
		return nil, fmt.Errorf("--file: %w", err)
	}
	return body, nil
}
