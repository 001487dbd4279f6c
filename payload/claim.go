package payload

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/wakebelltype"
)

const claimName = "claim-check"

// Store keeps large bodies: a bucket, a table, a folder. Its methods are called from many
// goroutines, and may be repeated with the same key. Its errors are retried like those of
// a handler.
type Store interface {
	// Put stores a body, and returns when other processes can Get it. The key has 32
	// hexadecimal digits and is used for no other body.
	Put(ctx context.Context, key string, body []byte) error

	// Get returns a body, or an error if it has more than limit bytes.
	Get(ctx context.Context, key string, limit int) ([]byte, error)

	// Delete removes a body. That there is none is no error.
	Delete(ctx context.Context, key string) error
}

// ClaimCheck returns a Codec, named claim-check, that puts bodies of more than aboveBytes
// into a store; Redis has the key, the size and the SHA-256 of the body. It is the last
// codec of a Chain. Set Chain.Limit to the largest body, because PayloadLimit bounds only
// what is stored in Redis.
//
// The node deletes a body after Redis has confirmed the ack of its timer or message.
// Nothing deletes the bodies of timers that were replaced, cancelled or dead-lettered,
// that a remote subscriber with a Chain of its own handled, or whose schedule call failed.
// So give the store an expiry that is longer than the longest delay, all retries, and the
// time for which you keep dead letters; it bounds what remains. The bodies of recurring
// schedules, which all their runs share, stay in Redis.
func ClaimCheck(store Store, aboveBytes int) Codec { return &claimCheck{store, aboveBytes} }

type claimCheck struct {
	store Store
	above int
}

func (*claimCheck) Name() string { return claimName }

func (c *claimCheck) validate() error {
	switch {
	case c.store == nil:
		return argument.Invalid("ClaimCheck", "nil store")
	case c.above < 0:
		return argument.Invalid("ClaimCheck", "%d bytes, want 0 or more", c.above)
	}
	return nil
}

func (c *claimCheck) Encode(ctx context.Context, of Item, body []byte) ([]byte, Step, error) {
	if len(body) <= c.above || of.Kind == wakebelltype.OutgoingRecurring {
		return body, Step{Skipped: true}, nil
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails
	key := hex.EncodeToString(random[:])
	if err := c.store.Put(ctx, key, body); err != nil {
		return nil, Step{}, fmt.Errorf("put %s: %w", key, err)
	}
	return nil, Step{Params: map[string]string{"ref": key, "size": strconv.Itoa(len(body)), "sha256": digest(body)}}, nil
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func (c *claimCheck) Decode(ctx context.Context, _ Item, s Step, body []byte, limit int) ([]byte, error) {
	key, err := s.ref()
	if err != nil {
		return nil, err
	}
	size, err := strconv.Atoi(s.Params["size"])
	switch {
	case err != nil || size < 0 || len(body) > 0:
		return nil, fmt.Errorf("%w: malformed claim check of %d bytes", ErrCorrupt, len(body))
	case size > limit:
		return nil, tooLarge(limit)
	}
	stored, err := c.store.Get(ctx, key, size)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	if len(stored) != size || subtle.ConstantTimeCompare([]byte(digest(stored)), []byte(s.Params["sha256"])) == 0 {
		return nil, fmt.Errorf("%w: the body in the store as %s is another one", ErrCorrupt, key)
	}
	return stored, nil
}

func (c *claimCheck) delete(ctx context.Context, s Step) error {
	key, err := s.ref()
	if err != nil {
		return err
	}
	if err := c.store.Delete(ctx, key); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

// ref returns the key in the store, which is no other name: Redis is not trusted to choose
// what is read and deleted.
func (s Step) ref() (string, error) {
	key := s.Params["ref"]
	if raw, err := hex.DecodeString(key); err != nil || len(raw) != 16 {
		return "", fmt.Errorf("%w: malformed reference %.40q", ErrCorrupt, key)
	}
	return key, nil
}
