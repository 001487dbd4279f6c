package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

// bodyLimit bounds a decoded body, in bytes. Programs may have a larger limit.
const bodyLimit = 64 << 20

// loadPayloads reads the keys of --payload-keys or the environment. Without keys,
// compressed bodies are shown all the same.
func (a *App) loadPayloads() error {
	file := a.payloadKeys
	if file == "" {
		file = os.Getenv("WAKEBELL_PAYLOAD_KEYS")
	}
	codecs := []payload.Codec{payload.Compress(math.MaxInt)} // decompresses, and compresses nothing
	if file != "" {
		keys, err := a.readKeys(file)
		if err != nil {
			return fmt.Errorf("--payload-keys: %w", err)
		}
		codecs = append(codecs, payload.Encrypt(keys...))
	}
	a.payloads, a.encrypts = &payload.Chain{Codecs: codecs, Limit: bodyLimit}, file != ""
	return nil
}

func (a *App) readKeys(name string) ([]payload.Key, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it is only read
	if info, err := file.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		a.warn(fmt.Sprintf("--payload-keys: other users than the owner have access to %s (%v)", name, info.Mode().Perm()))
	}
	return payload.ReadKeys(file)
}

// Payloads returns the chain with which a command stores bodies and a node handles them,
// after Connect or Ask; nil without keys: as they are.
func (a *App) Payloads() *payload.Chain {
	if !a.encrypts {
		return nil
	}
	return a.payloads
}

// Reading returns a chain that decodes bodies, also compressed ones without keys.
func (a *App) Reading() (*payload.Chain, error) {
	err := a.loadPayloads()
	return a.payloads, err
}

// Plain returns the content of a timer of a topic, named without its prefix, with its body
// decoded if it can be, and how it is encoded; empty: not at all. If the body cannot be
// decoded, the encoding says why.
func (a *App) Plain(ctx context.Context, topic, id string, c wakebell.Content) (_ wakebell.Content, encoding string, decoded bool) {
	if !payload.Marked(c.Headers, nil) {
		return c, "", false
	}
	return a.opened(ctx, payload.Encoded{Kind: wakebelltype.OutgoingTimer, Topic: topic, ID: id}, c)
}

// opened decodes a body that may be encoded, and is stored as e says.
func (a *App) opened(ctx context.Context, e payload.Encoded, c wakebell.Content) (_ wakebell.Content, encoding string, decoded bool) {
	encoding = payload.Description(c.Headers, c.Body)
	if encoding == "" {
		return c, "", false
	}
	plain, err := a.payloads.Decode(ctx, payload.Encoded{Kind: e.Kind, Topic: e.Topic, ID: e.ID, Headers: c.Headers, Body: c.Body, ContentType: c.ContentType})
	switch {
	case errors.Is(err, payload.ErrUnknownCodec): // the encoding names it
		return c, encoding, false
	case err != nil:
		return c, fmt.Sprintf("%s: %v", encoding, err), false
	}
	c.Body, c.ContentType, c.Headers = plain.Body, plain.ContentType, plain.Headers
	return c, encoding, true
}

// Content returns the printed content of a timer, decoded.
func (a *App) Content(ctx context.Context, topic, id string, c wakebell.Content) output.Content {
	plain, encoding, decoded := a.Plain(ctx, topic, id, c)
	return output.NewContent(plain).Encoded(encoding, decoded)
}

// MessageContent returns the printed content of a message of a queue, decoded.
func (a *App) MessageContent(ctx context.Context, queue string, body []byte) output.Content {
	plain, encoding, decoded := a.opened(ctx, payload.Encoded{Kind: wakebelltype.OutgoingMessage, Topic: queue}, wakebell.Content{Body: body})
	return output.MessageContent(plain.Body).Encoded(encoding, decoded)
}
