// Package webhook posts due timers to an HTTP endpoint, signed as the Standard Webhooks
// specification says, so that a program in any language can handle them.
//
// A [Webhook] is a handler for topics and queues of raw bodies:
//
//	hook, err := webhook.New(webhook.Config{URL: "https://billing.example/hooks", SecretFile: "secret"})
//	…
//	handler := wakebell.Handle(wakebell.NewTopic[[]byte]("invoices"), hook.Handle)
//
// # Requests
//
// The body of a request is that of the timer, with its content type or, without one,
// application/octet-stream. Headers:
//
//	webhook-id           of the message: the same in all attempts of a timer, another after it
//	                     is scheduled for another instant, rescheduled, run now or redriven.
//	                     Messages that other programs have published to a queue tell no
//	                     instant, and have another one in each attempt
//	webhook-timestamp    of this attempt, in Unix seconds
//	webhook-signature    "v1," and the Base64 of an HMAC-SHA256 of id.timestamp.body;
//	                     one for each secret, with spaces between them
//	wakebell-topic       with its prefix
//	wakebell-id          of the timer
//	wakebell-attempt     from 1
//	wakebell-due         the instant for which the timer was scheduled, RFC 3339 in UTC
//	wakebell-key         of the timer, with Config.Key
//
// In topics, ids and keys, bytes other than visible ASCII, and %, are percent-encoded.
// The signature covers webhook-id, webhook-timestamp and the body. [Verify] verifies it
// in Go; the clients for Python and TypeScript have functions for it, as have the
// libraries of Standard Webhooks.
//
// # Answers
//
//	2xx                                   ack
//	408, 425, 429, 5xx, network error     retry: after Retry-After if the answer has one
//	                                      in the future, or else the topic's backoff
//	others, also 3xx                      reject: a dead letter with the status and the
//	                                      first 256 bytes of the answer
//
// Redirects are not followed. An answer may be lost after the endpoint has acted, so it
// receives a timer at least once; webhook-id tells repetitions.
//
// # Addresses
//
// Only the configured URL is called. A connection to an address that is not public
// (loopback, private, link-local, metadata services, multicast, …) is refused unless
// Config.AllowNetworks has it. The check is made on the resolved address when a connection
// is opened, so that a changed DNS record does not circumvent it.
//
// Errors and logs name the host of the URL, and neither its path nor its query. Secrets
// are never part of them.
package webhook
