package payload_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log"
	"strings"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Large bodies are compressed, all are encrypted, and those that are still large are kept
// in a bucket. The topic "metrics" is only compressed.
func Example() {
	server := embedded.Start()
	defer server.Close()
	rdb := server.Client()
	defer func() { check(rdb.Close()) }()

	secret := base64.StdEncoding.EncodeToString(make([]byte, 32)) // of: head -c 32 /dev/urandom | base64
	keys, err := payload.ReadKeys(strings.NewReader("2026-11 " + secret + "\n"))
	check(err)
	compress := payload.Compress(1 << 10)
	conn, err := connection.New(rdb, connection.Config{Payloads: &payload.Chain{
		Codecs: []payload.Codec{compress, payload.Encrypt(keys...), payload.ClaimCheck(memory{}, 256<<10)},
		Topics: map[string][]payload.Codec{"metrics": {compress}},
		Limit:  8 << 20,
	}})
	check(err)
	client, err := wakebell.NewClient(conn)
	check(err)

	invoices, ctx := wakebell.NewTopic[string]("invoices"), context.Background()
	_, err = invoices.Schedule(ctx, client, "995 cents", wakebell.ID("inv-42"))
	check(err)
	timer, err := invoices.Get(ctx, client, "inv-42")
	check(err)
	fmt.Println(payload.Description(timer.Content.Headers, timer.Content.Body))
	fmt.Println(timer.Body, "up to", client.Payloads().Limit)
	// Output:
	// encrypted with key 2026-11, 53 bytes
	// 995 cents up to 8388608
}

// rot13 is a codec for puzzles.
type rot13 struct{}

func (rot13) Name() string { return "rot13" }

func (rot13) Encode(_ context.Context, of payload.Item, body []byte) ([]byte, payload.Step, error) {
	if of.Kind == wakebelltype.OutgoingMessage {
		return body, payload.Step{Skipped: true}, nil
	}
	return bytes.Map(turned, body), payload.Step{}, nil
}

func (rot13) Decode(_ context.Context, _ payload.Item, _ payload.Step, body []byte, _ int) ([]byte, error) {
	return bytes.Map(turned, body), nil
}

func turned(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return 'a' + (r-'a'+13)%26
	}
	return r
}

// A Codec of your own has a name that its bodies are marked with.
func ExampleCodec() {
	var own payload.Codec = rot13{}
	chain := (&payload.Chain{Codecs: []payload.Codec{own}}).WithLimit(64 << 10)
	check(chain.Validate())

	o := &wakebelltype.Outgoing{Kind: wakebelltype.OutgoingTimer, Topic: "puzzles", ID: "1", Body: []byte("hello")}
	store := func(context.Context, []*wakebelltype.Outgoing) error { return nil }
	check(chain.Encode(store)(context.Background(), []*wakebelltype.Outgoing{o}))
	fmt.Println(string(o.Body), o.ContentType, payload.Marked(o.Headers, o.Body))

	plain, err := chain.Decode(context.Background(), payload.Encoded{Topic: "puzzles", ID: "1", Headers: o.Headers, Body: o.Body})
	check(err)
	fmt.Println(string(plain.Body))
	// Output:
	// uryyb application/x-wakebell-payload true
	// hello
}

// A program that reads the bodies in Redis itself decodes them with the same Chain.
func ExampleDecoded_Discard() {
	var bucket payload.Store = memory{}
	chain := &payload.Chain{Codecs: []payload.Codec{payload.ClaimCheck(bucket, 3)}}
	o := &wakebelltype.Outgoing{Kind: wakebelltype.OutgoingTimer, Topic: "films", ID: "1", Body: []byte("a large file")}
	store := func(context.Context, []*wakebelltype.Outgoing) error { return nil }
	check(chain.Encode(store)(context.Background(), []*wakebelltype.Outgoing{o}))

	film, err := chain.Decode(context.Background(), payload.Encoded{Topic: "films", ID: "1", Headers: o.Headers, Body: o.Body})
	check(err)
	fmt.Println(string(film.Body), film.InStore, len(bucket.(memory)))
	check(film.Discard(context.Background()))
	fmt.Println(len(bucket.(memory)))
	// Output:
	// a large file true 1
	// 0
}

// A body that is replaced is deleted without being read.
func ExampleChain_Reference() {
	bucket := memory{}
	chain := &payload.Chain{Codecs: []payload.Codec{payload.ClaimCheck(bucket, 3)}}
	o := &wakebelltype.Outgoing{Kind: wakebelltype.OutgoingTimer, Topic: "films", ID: "1", Body: []byte("a large file")}
	store := func(context.Context, []*wakebelltype.Outgoing) error { return nil }
	check(chain.Encode(store)(context.Background(), []*wakebelltype.Outgoing{o}))

	film := chain.Reference(payload.Encoded{Topic: "films", ID: "1", Headers: o.Headers})
	fmt.Println(film.InStore, len(film.Body))
	check(film.Discard(context.Background()))
	fmt.Println(len(bucket))
	// Output:
	// true 0
	// 0
}

// A key does not show its secret in a log.
func ExampleKey_Format() {
	key, err := payload.NewKey("2026-11", make([]byte, 32))
	check(err)
	fmt.Println(key.ID())
	format := key.Format // for all verbs
	fmt.Println(key, format != nil)
	// Output:
	// 2026-11
	// key 2026-11 true
}

// A stored body is used for another timer: the mark of the earlier one must not stay.
func ExampleUnmark() {
	headers := []wakebelltype.Header{{Key: payload.Header, Value: "1;for=timer gzip;size=200"}, {Key: "tenant", Value: "a"}}
	fmt.Println(payload.Marked(headers, nil), payload.Bound(headers, nil), payload.Unmark(headers))
	// Output: true false [{tenant a}]
}

// An encrypted body cannot be moved to another topic.
func ExampleBound() {
	headers := []wakebelltype.Header{{Key: payload.Header, Value: "1;for=timer aes-256-gcm;key=k1"}}
	fmt.Println(payload.Bound(headers, nil))
	// Output: true
}
