package wakebelltype

import (
	"strings"
	"time"
)

// AuditConfig configures the audit: the record of operations that change what others
// depend on. The zero value works. Processes on the same Redis should have the same
// Key.
type AuditConfig struct {
	// Key is the stream with the entries; default "timers_audit". It is one key for
	// all topics, queues, gates and recurring schedules. Redis keeps about the last
	// 10,000 entries; a caller with more than 1,000 of them in quick succession pushes
	// out its own, and not those of others.
	Key string

	// Caller is the name that entries of this process have as By, at most 256 bytes;
	// default user@host of the process. wakebell.WithCaller replaces it for a call.
	Caller string

	// Off switches the record off. Entries can still be listed.
	Off bool
}

// AuditOperation is the kind and the name of an operation, such as "topic.pause".
type AuditOperation string

// The operations that are recorded. Their kind is what stands before the dot.
const (
	AuditTopicPause      AuditOperation = "topic.pause"
	AuditTopicResume     AuditOperation = "topic.resume"
	AuditTopicRetune     AuditOperation = "topic.retune"
	AuditTopicCancelAll  AuditOperation = "topic.cancel_all"
	AuditTopicForget     AuditOperation = "topic.forget"
	AuditTopicRemove     AuditOperation = "topic.remove"
	AuditTopicDivide     AuditOperation = "topic.divide"
	AuditTopicReshard    AuditOperation = "topic.reshard"
	AuditTopicImport     AuditOperation = "topic.import"
	AuditTopicMove       AuditOperation = "topic.move"
	AuditTopicRepair     AuditOperation = "topic.repair"
	AuditTopicRedrive    AuditOperation = "topic.redrive"
	AuditTopicDeleteDead AuditOperation = "topic.delete_dead"

	// Those of an operator on timers, by the command line or the dashboard; see Change.
	AuditTopicSchedule   AuditOperation = "topic.schedule"
	AuditTopicCancel     AuditOperation = "topic.cancel"
	AuditTopicReschedule AuditOperation = "topic.reschedule"
	AuditTopicRunNow     AuditOperation = "topic.run_now"

	AuditQueuePublish    AuditOperation = "queue.publish" // by the dashboard; see Change
	AuditQueueRemove     AuditOperation = "queue.remove"
	AuditQueuePurge      AuditOperation = "queue.purge"
	AuditQueueRedrive    AuditOperation = "queue.redrive"
	AuditQueueDeleteDead AuditOperation = "queue.delete_dead"

	AuditGateRelease AuditOperation = "gate.release"
	AuditGateRepair  AuditOperation = "gate.repair"
	AuditGateRemove  AuditOperation = "gate.remove"

	AuditSchedulePut      AuditOperation = "schedule.put"
	AuditScheduleDelete   AuditOperation = "schedule.delete"
	AuditSchedulePause    AuditOperation = "schedule.pause"
	AuditScheduleResume   AuditOperation = "schedule.resume"
	AuditScheduleRun      AuditOperation = "schedule.run"
	AuditScheduleImport   AuditOperation = "schedule.import"
	AuditScheduleBackfill AuditOperation = "schedule.backfill"
)

// Kind returns "topic", "queue", "gate" or "schedule".
func (o AuditOperation) Kind() string {
	kind, _, _ := strings.Cut(string(o), ".")
	return kind
}

// Change is what an operator changed by calls that programs make as well, such as
// Cancel, and that are therefore not recorded by themselves. A tool for operators
// records it as one entry after its last call; see wakebell.Client.RecordChange.
type Change struct {
	// Operation is one of AuditTopicSchedule, AuditTopicCancel, AuditTopicReschedule,
	// AuditTopicRunNow and AuditQueuePublish.
	Operation AuditOperation
	Name      string // of the topic or the queue
	Count     int64  // timers or messages that changed
	Detail    string // which they were, in words, at most 1,024 bytes; the rest is cut
	Error     string // why the change ended after a part; at most 256 bytes; empty: it is complete
}

// AuditVia says how the caller of an operation is known.
type AuditVia string

const (
	// AuditViaProcess means that a process called the Go API or the command line with
	// access to Redis. By is the name that it gave.
	AuditViaProcess AuditVia = "process"
	// AuditViaToken means that a node authenticated a peer by its token. By is the
	// owner of the token.
	AuditViaToken AuditVia = "token"
	// AuditViaCertificate means that a node authenticated a peer by its certificate. By
	// is the common name of the certificate.
	AuditViaCertificate AuditVia = "certificate"
	// AuditViaNetwork means that the peer of a node presented no credentials. By is
	// empty.
	AuditViaNetwork AuditVia = "network"
)

// AuditEntry is the record of an operation. An operation that changed nothing because
// it failed is not recorded.
type AuditEntry struct {
	// At is when the operation ended, by Redis's clock. The redrives and deletions of
	// dead letters of one topic or queue that a caller makes within a minute are one
	// entry, which began at Since, unless 100 others were written meanwhile. So are puts,
	// deletions and runs of recurring schedules; Name is that of the last. So are calls
	// that change nothing: those with a Count of 0, and those that repeat the last
	// operation on their name.
	At    time.Time `json:"at"`
	Since time.Time `json:"since,omitzero"` // zero: one call

	Operation AuditOperation `json:"operation"`
	Name      string         `json:"name"`  // of the topic (with its prefix), queue, gate or recurring schedule
	Count     int64          `json:"count"` // timers, messages, dead letters or schedules that changed; 1 for each call on a whole

	By   string   `json:"by"`   // the caller
	Via  AuditVia `json:"via"`  // how the caller is known
	From string   `json:"from"` // program/process@host, or the address of a peer

	Detail string `json:"detail"` // arguments in words, at most 1,024 bytes
	Error  string `json:"error"`  // of an operation that ended after a part; at most 256 bytes

	// Cursor continues a listing after this entry; see Page.
	Cursor string `json:"cursor"`
}

// AuditFilter selects entries; the zero value selects all.
type AuditFilter struct {
	Operation AuditOperation // only this one, or a kind such as "topic"
	Name      string         // only of this topic, queue, gate or recurring schedule
	By        string         // only of this caller
	Since     time.Time      // only those that ended at or after it
	// Last selects the newest of the entries, 1 to 1,000, which are still listed the
	// oldest first; 0: all.
	Last int
}
