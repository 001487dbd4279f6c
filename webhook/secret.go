package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
)

const (
	secretPrefix    = "whsec_"
	shortestSecret  = 24 // bytes, as the specification says
	longestSecret   = 64
	newSecretBytes  = 32
	signaturePrefix = "v1,"
)

// Secret is a key for signatures. It is not shown when it is printed or logged.
type Secret struct{ key []byte }

// NewSecret returns a random secret.
func NewSecret() Secret {
	key := make([]byte, newSecretBytes)
	_, _ = rand.Read(key) // it never fails
	return Secret{key}
}

// ParseSecret parses a secret: whsec_ and the Base64 of 24 – 64 bytes. The prefix may be
// missing. Errors do not show it.
func ParseSecret(s string) (Secret, error) {
	key, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(s, secretPrefix))
	switch {
	case err != nil || strings.ContainsAny(s, "\r\n"):
		return Secret{}, argument.Invalid("secret", "want whsec_ and Base64")
	case len(key) < shortestSecret || len(key) > longestSecret:
		return Secret{}, argument.Invalid("secret", "%d bytes, want %d to %d", len(key), shortestSecret, longestSecret)
	}
	return Secret{key}, nil
}

// Reveal returns the text that ParseSecret parses, for a receiver.
func (s Secret) Reveal() string { return secretPrefix + base64.StdEncoding.EncodeToString(s.key) }

// Format hides the secret from all verbs of package fmt.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(secretPrefix + "…")) }

// MarshalText hides the secret from encoders, also those of logs.
func (Secret) MarshalText() ([]byte, error) { return []byte(secretPrefix + "…"), nil }

// sign returns the value of the header for signatures.
func sign(secrets []Secret, id string, at int64, body []byte) string {
	all := make([]string, len(secrets))
	for i, s := range secrets {
		all[i] = signaturePrefix + base64.StdEncoding.EncodeToString(s.sum(id, strconv.FormatInt(at, 10), body))
	}
	return strings.Join(all, " ")
}

func (s Secret) sum(id, at string, body []byte) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// Tolerance is how far the clock of a sender may be from that of Verify.
const Tolerance = 5 * time.Minute

// ErrSignature means that a request was not signed with one of the secrets, or too long ago.
var ErrSignature = errors.New("webhook: signature is not valid")

// Verify returns nil if one of the secrets has signed the request with these headers and
// this body, at most Tolerance ago. Otherwise the error wraps ErrSignature. A receiver
// should also remember the header webhook-id of what it has handled, because a request may
// be repeated.
func Verify(h http.Header, body []byte, secrets ...Secret) error {
	id, at := h.Get(headerID), h.Get(headerTimestamp)
	seconds, err := strconv.ParseInt(at, 10, 64)
	if id == "" || err != nil {
		return fmt.Errorf("%w: the headers webhook-id and webhook-timestamp are missing or wrong", ErrSignature)
	}
	if away := time.Since(time.Unix(seconds, 0)).Abs(); away > Tolerance {
		return fmt.Errorf("%w: its timestamp is %s away, want at most %s", ErrSignature, away.Round(time.Second), Tolerance)
	}
	for _, s := range secrets {
		want := s.sum(id, at, body)
		for signature := range strings.FieldsSeq(h.Get(headerSignature)) {
			encoded, v1 := strings.CutPrefix(signature, signaturePrefix)
			got, err := base64.StdEncoding.DecodeString(encoded)
			if v1 && err == nil && len(s.key) > 0 && hmac.Equal(got, want) {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: none of the secrets made it", ErrSignature)
}
