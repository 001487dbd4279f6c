package payload

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"github.com/wakebell/wakebell/internal/argument"
)

const (
	keySize  = 32
	maxKeyID = 64
	maxKeys  = 1000
)

// Key is a secret with an id. Formatting it shows the id alone.
type Key struct {
	id     string
	secret []byte
}

// NewKey returns a key for Encrypt. The id is stored with each body: 1 to 64 letters,
// digits and characters of ._-, unique for each secret for ever. The secret has 32 random
// bytes. Errors wrap wakebell.ErrInvalid.
func NewKey(id string, secret []byte) (Key, error) {
	switch {
	case id == "" || len(id) > maxKeyID || strings.ContainsFunc(id, func(r rune) bool { return !idRune(r) }):
		return Key{}, argument.Invalid("key", "id %s, want 1 to %d letters, digits and characters of ._-", argument.Quote(id), maxKeyID)
	case len(secret) != keySize:
		return Key{}, argument.Invalid("key "+id, "%d bytes, want %d", len(secret), keySize)
	}
	return Key{id, append([]byte(nil), secret...)}, nil
}

func idRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
}

// ID returns the id of the key.
func (k Key) ID() string { return k.id }

// Format writes the id for every verb, so that no log has the secret.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "key "+k.id) }

// ReadKeys reads a file of keys: a line ID SECRET for each, the secret in base64 of 32
// bytes. Empty lines and lines that begin with # are ignored. Errors wrap
// wakebell.ErrInvalid or are those of r. They name the line, not its content.
func ReadKeys(r io.Reader) ([]Key, error) {
	var keys []Key
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 || len(keys) == maxKeys {
			return nil, argument.Invalid("keys", "line %d: want an id and a secret in base64, and at most %d keys", n, maxKeys)
		}
		secret, err := base64.StdEncoding.DecodeString(fields[1])
		if err != nil {
			return nil, argument.Invalid("keys", "line %d: the secret is not base64", n)
		}
		k, err := NewKey(fields[0], secret)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		keys = append(keys, k)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	if err := (encryption{keys}).validate(); err != nil {
		return nil, err
	}
	return keys, nil
}
