package convert

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// The limits of one messages.PublishRequest.
	maxPublish      = 500
	maxPublishBytes = 1 << 20

	maxPendingCap = 1_000_000_000
)

// PublishMessage returns the message that publishes the first n drafts, which are
// as many as fit: those with the settings of the first, up to 500 of them and
// 1 MiB. The error is that of draft n. The node checks the sizes of the bodies.
func PublishMessage(drafts ...queue.Draft) (m *messages.PublishRequest, n int, err error) {
	if len(drafts) == 0 {
		return nil, 0, argument.Invalid("drafts", "none")
	}
	first := drafts[0].Queue
	m = &messages.PublishRequest{
		Name:       first.Keys.Name,
		Queue:      &messages.Queue{Separator: first.Keys.Separator, DeadLetters: first.Keys.DeadLetters},
		Cap:        uint32(min(max(first.PendingCap, 0), maxPendingCap)), //nolint:gosec // bounded
		DropOldest: first.WhenFull == queue.FullDropsOldest,
		FreesKeys:  first.FreeKeyOnFailure,
	}
	if first.DeduplicationWindow != 0 {
		m.Window = durationpb.New(first.DeduplicationWindow)
	}
	for size := 0; n < len(drafts) && n < maxPublish && drafts[n].Queue == first; n++ {
		d := drafts[n]
		if d.Err != nil {
			return nil, n, d.Err
		}
		if size += sizeOf(d); n > 0 && size > maxPublishBytes {
			break
		}
		m.Messages = append(m.Messages, &messages.QueueMessage{Body: d.Payload, Key: d.Key, Tail: d.Tail, Headers: HeaderMap(d.Headers)})
	}
	return m, n, nil
}

// headerBytes is what a header takes at least, so that no request has more values than a node
// accepts.
const headerBytes = 16

// sizeOf is about how many bytes a draft takes in a message.
func sizeOf(d queue.Draft) int {
	size := len(d.Payload) + len(d.Key)
	for _, h := range d.Headers {
		size += len(h.Key) + len(h.Value) + headerBytes
	}
	return size
}

// HeaderMap converts headers; invalid UTF-8 is replaced.
func HeaderMap(headers []wakebelltype.Header) map[string]string {
	if len(headers) == 0 {
		return nil
	}
	m := make(map[string]string, len(headers))
	for _, h := range headers {
		m[text.Valid(h.Key)] = text.Valid(h.Value)
	}
	return m
}

// HeaderList is the inverse of HeaderMap, sorted by name.
func HeaderList(m map[string]string) (headers []wakebelltype.Header) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		headers = append(headers, wakebelltype.Header{Key: key, Value: m[key]})
	}
	return headers
}

// PublishDrafts returns the drafts in a message to the gateway. A publish of them
// never waits while the queue is full: the client that sent the message waits.
func PublishDrafts(m *messages.PublishRequest) []queue.Draft {
	settings := queue.Settings{
		Keys: wakebelltype.QueueKeys{
			Name: m.GetName(), Separator: m.GetQueue().GetSeparator(), DeadLetters: m.GetQueue().GetDeadLetters(),
		},
		DeduplicationWindow: m.GetWindow().AsDuration(),
		PendingCap:          int(min(m.GetCap(), maxPendingCap)),
		FreeKeyOnFailure:    m.GetFreesKeys(),
	}
	if m.GetDropOldest() {
		settings.WhenFull = queue.FullDropsOldest
	}
	drafts := make([]queue.Draft, len(m.GetMessages()))
	for i, one := range m.GetMessages() {
		drafts[i] = queue.Draft{Queue: settings, Payload: one.GetBody(), Key: one.GetKey(), Tail: one.GetTail(), Headers: HeaderList(one.GetHeaders())}
	}
	return drafts
}
