package audit

import (
	"slices"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Operation is a row of the table of operations that are recorded.
type Operation struct {
	Name    wakebelltype.AuditOperation
	Request string // the message by which a peer requests it; empty: it needs Redis itself

	// merged sums up the entries of a caller within a minute. It is set where one
	// command of an operator, or a program, makes many calls, and where a repeated call
	// changes nothing.
	merged merging

	// reported operations are those of a Change: the caller, and not the operation,
	// writes the entry.
	reported bool
}

// merging says which entries are merged.
type merging string

const (
	apart    merging = ""
	repeats  merging = "repeats" // of one name, unless another entry of it is between
	sameName merging = "name"    // of one topic or queue
	anyName  merging = "any"
)

// Operations has all operations that are recorded. It is the only place that decides
// this; a test compares it with the rights that requests need.
var Operations = []Operation{
	{Name: wakebelltype.AuditTopicPause, Request: "PauseTopicRequest", merged: repeats},
	{Name: wakebelltype.AuditTopicResume, Request: "ResumeTopicRequest", merged: repeats},
	{Name: wakebelltype.AuditTopicRetune, Request: "RetuneTopicRequest", merged: repeats},
	{Name: wakebelltype.AuditTopicCancelAll, Request: "CancelAllRequest"},
	{Name: wakebelltype.AuditTopicForget, Request: "ForgetTopicRequest", merged: repeats},
	{Name: wakebelltype.AuditTopicRemove, Request: "RemoveTopicRequest"},
	{Name: wakebelltype.AuditTopicDivide, Request: "DivideTopicRequest"},
	{Name: wakebelltype.AuditTopicReshard, Request: "ReshardTopicRequest"},
	{Name: wakebelltype.AuditTopicImport},
	{Name: wakebelltype.AuditTopicMove},
	{Name: wakebelltype.AuditTopicRepair, merged: sameName},
	{Name: wakebelltype.AuditTopicRedrive, Request: "RedriveDeadLettersRequest", merged: sameName},
	{Name: wakebelltype.AuditTopicDeleteDead, Request: "DeleteDeadLettersRequest", merged: sameName},
	{Name: wakebelltype.AuditTopicSchedule, Request: "RecordChangeRequest", reported: true},
	{Name: wakebelltype.AuditTopicCancel, Request: "RecordChangeRequest", reported: true},
	{Name: wakebelltype.AuditTopicReschedule, Request: "RecordChangeRequest", reported: true},
	{Name: wakebelltype.AuditTopicRunNow, Request: "RecordChangeRequest", reported: true},
	{Name: wakebelltype.AuditQueuePublish, Request: "RecordChangeRequest", reported: true},
	{Name: wakebelltype.AuditQueueRemove, Request: "RemoveQueueRequest"},
	{Name: wakebelltype.AuditQueuePurge, Request: "PurgeQueueRequest"},
	{Name: wakebelltype.AuditQueueRedrive, Request: "RedriveQueueDeadLetterRequest", merged: sameName},
	{Name: wakebelltype.AuditQueueDeleteDead, Request: "DeleteQueueDeadLettersRequest", merged: sameName},
	{Name: wakebelltype.AuditGateRelease, Request: "ReleaseGateRequest"},
	{Name: wakebelltype.AuditGateRepair, Request: "RepairGateRequest", merged: repeats},
	{Name: wakebelltype.AuditGateRemove, Request: "RemoveGateRequest"},
	{Name: wakebelltype.AuditSchedulePut, Request: "PutRecurringRequest", merged: anyName},
	{Name: wakebelltype.AuditScheduleDelete, Request: "DeleteRecurringRequest", merged: anyName},
	{Name: wakebelltype.AuditSchedulePause, Request: "EnableRecurringRequest", merged: repeats},
	{Name: wakebelltype.AuditScheduleResume, Request: "EnableRecurringRequest", merged: repeats},
	{Name: wakebelltype.AuditScheduleRun, Request: "RunRecurringRequest", merged: anyName},
	{Name: wakebelltype.AuditScheduleImport, Request: "ImportRecurringRequest", merged: repeats},
	{Name: wakebelltype.AuditScheduleBackfill, Request: "BackfillRecurringRequest"},
}

// find returns the row of an operation, or nil.
func find(name wakebelltype.AuditOperation) *Operation {
	i := slices.IndexFunc(Operations, func(o Operation) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	return &Operations[i]
}
