package payload

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/wakebell/wakebell/internal/argument"
)

const (
	encryptionName = "aes-256-gcm"

	// keyInfo separates the keys of bodies from other uses of a secret.
	keyInfo  = "wakebell payload 1"
	saltSize = 16
)

// Encrypt returns a Codec, named aes-256-gcm, that encrypts and authenticates bodies. The
// first key encrypts; all of them decrypt. Rotate a key in three deployments: add the new
// key as the last one everywhere, then make it the first one, and remove the old one when
// no body waits that needs it; dead letters count.
//
// Each body has a key of its own, which HKDF-SHA-256 derives from yours with a random
// salt, so that the number of bodies per key is not bounded in practice. Additional data
// bind it to the kind, the topic and the id (of a run: its schedule; of a message: its
// queue alone), to the content type, and to the codecs before it. A body that was moved to
// another timer is corrupt. A body that was stored again for the same timer is not
// noticed.
//
// Ids, topics, instants, headers and the length of a body are not encrypted.
func Encrypt(keys ...Key) Codec { return encryption{slices.Clone(keys)} }

type encryption struct{ keys []Key }

func (encryption) Name() string { return encryptionName }

func isEncryption(c Codec) bool { return c.Name() == encryptionName }

func (e encryption) validate() error {
	if len(e.keys) == 0 {
		return argument.Invalid("Encrypt", "no keys")
	}
	for i, k := range e.keys {
		if k.id == "" {
			return argument.Invalid("Encrypt", "key %d is zero; use NewKey", i)
		}
		if slices.ContainsFunc(e.keys[:i], func(o Key) bool { return o.id == k.id }) {
			return argument.Invalid("Encrypt", "key %s is listed twice", k.id)
		}
	}
	return nil
}

// Encode returns salt, nonce, ciphertext and tag.
func (e encryption) Encode(_ context.Context, of Item, body []byte) ([]byte, Step, error) {
	out := make([]byte, saltSize, saltSize+len(body)+sealSize)
	_, _ = rand.Read(out) // it never fails
	seal, err := e.keys[0].sealer(out)
	if err != nil {
		return nil, Step{}, err
	}
	return seal.Seal(out, nil, body, additional(of)), Step{Params: map[string]string{"key": e.keys[0].id}}, nil
}

func (e encryption) Decode(_ context.Context, of Item, s Step, body []byte, _ int) ([]byte, error) {
	i := slices.IndexFunc(e.keys, func(k Key) bool { return k.id == s.Params["key"] })
	if i < 0 {
		return nil, fmt.Errorf("%w %s: add it to the keys of Encrypt", ErrUnknownKey, argument.Quote(s.Params["key"]))
	}
	if len(body) < saltSize+sealSize {
		return nil, fmt.Errorf("%w: %d bytes, an encrypted body has at least %d", ErrCorrupt, len(body), saltSize+sealSize)
	}
	open, err := e.keys[i].sealer(body[:saltSize])
	if err != nil {
		return nil, err
	}
	plain, err := open.Open(nil, nil, body[saltSize:], additional(of))
	if err != nil {
		return nil, fmt.Errorf("%w: it was not encrypted with this key %s for this timer, or was changed", ErrCorrupt, e.keys[i].id)
	}
	return plain, nil
}

// sealSize is what a sealer adds: a nonce of 12 bytes and a tag of 16.
const sealSize = 28

// sealer returns the cipher of one body, which chooses a random nonce.
func (k Key) sealer(salt []byte) (cipher.AEAD, error) {
	secret, err := hkdf.Key(sha256.New, k.secret, salt, keyInfo, keySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// additional returns the additional data: each part after its length in 4 bytes,
// big-endian.
func additional(of Item) []byte {
	var out []byte
	for _, part := range []string{of.Before, of.Topic, of.ID} {
		out = binary.BigEndian.AppendUint32(out, uint32(len(part))) //nolint:gosec // names and marks are bounded
		out = append(out, part...)
	}
	return out
}
