package timers

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/wakebell/wakebell/redisops"
)

// slots is how many slots a Cluster has.
const slots = 16384

// keyName is a name that keys are given, and its default.
type keyName struct {
	field, preset string
	value         *string
}

// bases are the values of names.
func bases(names []keyName) []string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = *n.value
	}
	return all
}

// escapeColons writes a part of a key that ends at a colon.
var escapeColons = strings.NewReplacer("%", "%25", ":", "%3A")

// slotOf is the slot of a key: CRC16 (XMODEM) of its hash tag, if it has one.
func slotOf(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
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
	return int(crc % slots)
}

// checkTopic says whether a topic may have this name.
func checkTopic(topic string) error {
	if topic == "" || len(topic) > MaxName {
		return fmt.Errorf("%w: topic: %d bytes, want 1 to %d", redisops.ErrInvalid, len(topic), MaxName)
	}
	return nil
}

// faultOf says what is wrong with an id; empty: nothing.
func faultOf(id string) string {
	switch {
	case id == "" || len(id) > MaxName:
		return fmt.Sprintf("id: %d bytes, want 1 to %d", len(id), MaxName)
	case !utf8.ValidString(id):
		return "id: not valid UTF-8"
	default:
		return ""
	}
}

func checkID(id string) error {
	if fault := faultOf(id); fault != "" {
		return fmt.Errorf("%w: %s", redisops.ErrInvalid, fault)
	}
	return nil
}
