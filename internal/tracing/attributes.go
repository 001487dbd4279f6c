package tracing

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"go.opentelemetry.io/otel/attribute"

	"github.com/wakebell/wakebell/internal/text"
)

// The attributes of the semantic conventions for messaging, and Wakebell's own.
const (
	messagingSystem  = attribute.Key("messaging.system")
	operationName    = attribute.Key("messaging.operation.name")
	operationType    = attribute.Key("messaging.operation.type")
	destinationName  = attribute.Key("messaging.destination.name")
	messageID        = attribute.Key("messaging.message.id")
	conversationID   = attribute.Key("messaging.message.conversation_id")
	messageBodySize  = attribute.Key("messaging.message.body.size")
	batchCount       = attribute.Key("messaging.batch.message_count")
	errorType        = attribute.Key("error.type")
	attemptAttribute = attribute.Key("wakebell.attempt")
	lateness         = attribute.Key("wakebell.lateness") // in seconds
	outcome          = attribute.Key("wakebell.outcome")
	kind             = attribute.Key("wakebell.kind")
	run              = attribute.Key("wakebell.run")
	due              = attribute.Key("wakebell.due")
	schedule         = attribute.Key("wakebell.schedule")
)

const system = "wakebell"

// Outcome is what became of a delivery, in the words of the metric wakebell.deliveries.
type Outcome string

// The outcomes.
const (
	Ack       Outcome = "ack"
	Retry     Outcome = "retry"
	Snoozed   Outcome = "snoozed"
	Dead      Outcome = "dead"
	Rejected  Outcome = "rejected"
	Discarded Outcome = "discarded"
	Released  Outcome = "released"
	Crashed   Outcome = "crashed"
	Cancelled Outcome = "cancelled"
	LeaseLost Outcome = "lease_lost"
	Hung      Outcome = "hung"

	Mixed Outcome = "mixed" // of a batch
)

// maxText bounds the text of an error in a span, in bytes.
const maxText = 1024

func clip(s string) string { return text.Clip(text.Valid(s), maxText) }

// typeOf returns the value of error.type: the type of the innermost error that has
// one of its own, since those of fmt and errors say nothing.
func typeOf(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "context.Canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "context.DeadlineExceeded"
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if t := reflect.TypeOf(e); !wraps[t.String()] {
			return fmt.Sprint(t)
		}
	}
	return "_OTHER"
}

// wraps are the types of errors that only have a text.
var wraps = map[string]bool{
	"*fmt.wrapError": true, "*fmt.wrapErrors": true, "*errors.errorString": true, "*errors.joinError": true,
}
