package layout

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Slots is the number of slots of a Cluster.
const Slots = 16384

// KeyName is a configurable name of keys and its default.
type KeyName struct {
	Field, Preset string
	Value         *string
	NotAKey       bool // the name is part of a value, so it may equal that of a key
}

// Complete sets the empty names to their defaults and checks that no two keys have
// the same name; the error wraps [wakebelltype.ErrInvalid] and begins with kind.
func Complete(kind string, names []KeyName) error {
	var errs []error
	first := map[string]string{}
	for _, n := range names {
		if *n.Value == "" {
			*n.Value = n.Preset
		}
		if n.NotAKey {
			continue
		}
		if other, ok := first[*n.Value]; ok {
			errs = append(errs, fmt.Errorf("%w: %s: %s and %s are both %q",
				wakebelltype.ErrInvalid, kind, other, n.Field, *n.Value))
			continue
		}
		first[*n.Value] = n.Field
	}
	return errors.Join(errs...)
}

// Bases returns the values of names.
func Bases(names []KeyName) []string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = *n.Value
	}
	return all
}

// EscapeColons escapes a part of a key that ends at a colon.
var EscapeColons = strings.NewReplacer("%", "%25", ":", "%3A")

// UnescapeColons is the inverse of EscapeColons.
var UnescapeColons = strings.NewReplacer("%25", "%", "%3A", ":")

// SlotOf returns the slot of a key: CRC16 (XMODEM) of its hash tag, if it has one,
// or of the key.
func SlotOf(key string) int {
	if tag := tagOf(key); tag != "" {
		key = tag
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % Slots)
}

// HasTag reports whether a name has a hash tag, which alone decides its slot.
func HasTag(name string) bool { return tagOf(name) != "" }

// tagOf returns the text between the first brace and the next closing one.
func tagOf(name string) string {
	_, rest, _ := strings.Cut(name, "{")
	tag, _, closed := strings.Cut(rest, "}")
	if !closed {
		return ""
	}
	return tag
}

// Numbered returns a name with a number at the end of its hash tag: {gates}:state with the
// number 3 becomes {gates:3}:state. A name without a hash tag stays as it is.
func Numbered(name string, n int) string {
	if !HasTag(name) {
		return name
	}
	before, rest, _ := strings.Cut(name, "{")
	tag, after, _ := strings.Cut(rest, "}")
	return before + "{" + tag + ":" + strconv.Itoa(n) + "}" + after
}

// Unnumbered is the inverse of Numbered. A name without a number in its hash tag stays as
// it is.
func Unnumbered(name string) string {
	tag := tagOf(name)
	i := strings.LastIndexByte(tag, ':')
	if i < 1 {
		return name
	}
	if n, err := strconv.Atoi(tag[i+1:]); err != nil || n < 0 {
		return name
	}
	return strings.Replace(name, "{"+tag+"}", "{"+tag[:i]+"}", 1)
}

// CheckTopic checks the name of a topic.
func CheckTopic(topic string) error {
	switch {
	case topic == "":
		return fmt.Errorf("%w: topic: empty", wakebelltype.ErrInvalid)
	case len(topic) > wakebelltype.MaxName:
		return fmt.Errorf("%w: topic: %d bytes, at most %d", wakebelltype.ErrInvalid, len(topic), wakebelltype.MaxName)
	}
	return nil
}

// CheckLogical checks the name of a topic that a caller gives, which must not be one of a
// shard.
func CheckLogical(topic string) error {
	if err := CheckTopic(topic); err != nil {
		return err
	}
	if sharding.Reserved(topic) {
		return fmt.Errorf("%w: topic: %q has the form of a shard, topic~shards~number; a topic must not end so", wakebelltype.ErrInvalid, topic)
	}
	return nil
}

// FaultOf describes what is wrong with an id; empty means valid.
func FaultOf(id string) string {
	switch {
	case id == "" || len(id) > wakebelltype.MaxName:
		return fmt.Sprintf("id: %d bytes, want 1 to %d", len(id), wakebelltype.MaxName)
	case !utf8.ValidString(id):
		return "id: not valid UTF-8"
	default:
		return ""
	}
}

// CheckID checks the id of a timer.
func CheckID(id string) error {
	if fault := FaultOf(id); fault != "" {
		return fmt.Errorf("%w: %s", wakebelltype.ErrInvalid, fault)
	}
	return nil
}
