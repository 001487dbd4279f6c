// Package payload encodes the bodies of timers, messages, recurring schedules and
// reminders before they leave a process, and decodes them before a handler receives
// them: it compresses, encrypts, and keeps large bodies in a store of yours.
//
// A Chain is set as Payloads in connection.Config. An encoded body is marked, so that a Chain also reads bodies that
// were written plainly, or with other codecs or older keys: codecs can be added,
// removed and reordered while timers wait. docs/flow.md has the format.
package payload
