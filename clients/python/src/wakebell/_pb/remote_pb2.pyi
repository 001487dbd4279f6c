from google.protobuf import duration_pb2 as _duration_pb2
from wakebell._pb import endings_pb2 as _endings_pb2
from wakebell._pb import gates_pb2 as _gates_pb2
from wakebell._pb import gateway_pb2 as _gateway_pb2
from wakebell._pb import queues_pb2 as _queues_pb2
from wakebell._pb import recurring_pb2 as _recurring_pb2
from wakebell._pb import wakebell_pb2 as _wakebell_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Command(_message.Message):
    __slots__ = ["acquire_turn", "add_parts", "cancel", "cancel_join", "close_join", "delete_recurring", "enable_recurring", "extend_turn", "get_join", "get_recurring", "get_timer", "get_topic_stats", "guard_turn", "keep", "list_parts", "list_recurring", "list_timers", "preview_recurring", "publish", "put_recurring", "release_turn", "reschedule", "run_now", "run_recurring", "schedule", "schedule_batch", "subscribe", "unsubscribe", "verdicts"]
    ACQUIRE_TURN_FIELD_NUMBER: _ClassVar[int]
    ADD_PARTS_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    CANCEL_JOIN_FIELD_NUMBER: _ClassVar[int]
    CLOSE_JOIN_FIELD_NUMBER: _ClassVar[int]
    DELETE_RECURRING_FIELD_NUMBER: _ClassVar[int]
    ENABLE_RECURRING_FIELD_NUMBER: _ClassVar[int]
    EXTEND_TURN_FIELD_NUMBER: _ClassVar[int]
    GET_JOIN_FIELD_NUMBER: _ClassVar[int]
    GET_RECURRING_FIELD_NUMBER: _ClassVar[int]
    GET_TIMER_FIELD_NUMBER: _ClassVar[int]
    GET_TOPIC_STATS_FIELD_NUMBER: _ClassVar[int]
    GUARD_TURN_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    LIST_PARTS_FIELD_NUMBER: _ClassVar[int]
    LIST_RECURRING_FIELD_NUMBER: _ClassVar[int]
    LIST_TIMERS_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_RECURRING_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_FIELD_NUMBER: _ClassVar[int]
    PUT_RECURRING_FIELD_NUMBER: _ClassVar[int]
    RELEASE_TURN_FIELD_NUMBER: _ClassVar[int]
    RESCHEDULE_FIELD_NUMBER: _ClassVar[int]
    RUN_NOW_FIELD_NUMBER: _ClassVar[int]
    RUN_RECURRING_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_BATCH_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBE_FIELD_NUMBER: _ClassVar[int]
    UNSUBSCRIBE_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    acquire_turn: _gates_pb2.AcquireTurnRequest
    add_parts: _endings_pb2.AddPartsRequest
    cancel: _gateway_pb2.CancelRequest
    cancel_join: _endings_pb2.CancelJoinRequest
    close_join: _endings_pb2.CloseJoinRequest
    delete_recurring: _recurring_pb2.DeleteRecurringRequest
    enable_recurring: _recurring_pb2.EnableRecurringRequest
    extend_turn: _gates_pb2.ExtendTurnRequest
    get_join: _endings_pb2.GetJoinRequest
    get_recurring: _recurring_pb2.GetRecurringRequest
    get_timer: _gateway_pb2.GetTimerRequest
    get_topic_stats: _gateway_pb2.GetTopicStatsRequest
    guard_turn: _gates_pb2.GuardTurnRequest
    keep: _wakebell_pb2.KeepRequest
    list_parts: _endings_pb2.ListPartsRequest
    list_recurring: _recurring_pb2.ListRecurringRequest
    list_timers: _gateway_pb2.ListTimersRequest
    preview_recurring: _recurring_pb2.PreviewRecurringRequest
    publish: _queues_pb2.PublishRequest
    put_recurring: _recurring_pb2.PutRecurringRequest
    release_turn: _gates_pb2.ReleaseTurnRequest
    reschedule: _gateway_pb2.RescheduleRequest
    run_now: _gateway_pb2.RunNowRequest
    run_recurring: _recurring_pb2.RunRecurringRequest
    schedule: _gateway_pb2.ScheduleRequest
    schedule_batch: _gateway_pb2.ScheduleBatchRequest
    subscribe: SubscribeRequest
    unsubscribe: UnsubscribeRequest
    verdicts: Verdicts
    def __init__(self, schedule: _Optional[_Union[_gateway_pb2.ScheduleRequest, _Mapping]] = ..., schedule_batch: _Optional[_Union[_gateway_pb2.ScheduleBatchRequest, _Mapping]] = ..., cancel: _Optional[_Union[_gateway_pb2.CancelRequest, _Mapping]] = ..., get_timer: _Optional[_Union[_gateway_pb2.GetTimerRequest, _Mapping]] = ..., list_timers: _Optional[_Union[_gateway_pb2.ListTimersRequest, _Mapping]] = ..., reschedule: _Optional[_Union[_gateway_pb2.RescheduleRequest, _Mapping]] = ..., run_now: _Optional[_Union[_gateway_pb2.RunNowRequest, _Mapping]] = ..., get_topic_stats: _Optional[_Union[_gateway_pb2.GetTopicStatsRequest, _Mapping]] = ..., subscribe: _Optional[_Union[SubscribeRequest, _Mapping]] = ..., unsubscribe: _Optional[_Union[UnsubscribeRequest, _Mapping]] = ..., verdicts: _Optional[_Union[Verdicts, _Mapping]] = ..., put_recurring: _Optional[_Union[_recurring_pb2.PutRecurringRequest, _Mapping]] = ..., delete_recurring: _Optional[_Union[_recurring_pb2.DeleteRecurringRequest, _Mapping]] = ..., enable_recurring: _Optional[_Union[_recurring_pb2.EnableRecurringRequest, _Mapping]] = ..., run_recurring: _Optional[_Union[_recurring_pb2.RunRecurringRequest, _Mapping]] = ..., get_recurring: _Optional[_Union[_recurring_pb2.GetRecurringRequest, _Mapping]] = ..., list_recurring: _Optional[_Union[_recurring_pb2.ListRecurringRequest, _Mapping]] = ..., preview_recurring: _Optional[_Union[_recurring_pb2.PreviewRecurringRequest, _Mapping]] = ..., guard_turn: _Optional[_Union[_gates_pb2.GuardTurnRequest, _Mapping]] = ..., publish: _Optional[_Union[_queues_pb2.PublishRequest, _Mapping]] = ..., acquire_turn: _Optional[_Union[_gates_pb2.AcquireTurnRequest, _Mapping]] = ..., extend_turn: _Optional[_Union[_gates_pb2.ExtendTurnRequest, _Mapping]] = ..., release_turn: _Optional[_Union[_gates_pb2.ReleaseTurnRequest, _Mapping]] = ..., get_join: _Optional[_Union[_endings_pb2.GetJoinRequest, _Mapping]] = ..., list_parts: _Optional[_Union[_endings_pb2.ListPartsRequest, _Mapping]] = ..., add_parts: _Optional[_Union[_endings_pb2.AddPartsRequest, _Mapping]] = ..., close_join: _Optional[_Union[_endings_pb2.CloseJoinRequest, _Mapping]] = ..., cancel_join: _Optional[_Union[_endings_pb2.CancelJoinRequest, _Mapping]] = ..., keep: _Optional[_Union[_wakebell_pb2.KeepRequest, _Mapping]] = ...) -> None: ...

class Commands(_message.Message):
    __slots__ = ["commands"]
    COMMANDS_FIELD_NUMBER: _ClassVar[int]
    commands: _containers.RepeatedCompositeFieldContainer[Command]
    def __init__(self, commands: _Optional[_Iterable[_Union[Command, _Mapping]]] = ...) -> None: ...

class LeaseExtended(_message.Message):
    __slots__ = ["delivery", "id", "ttl"]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    delivery: int
    id: str
    ttl: _duration_pb2.Duration
    def __init__(self, id: _Optional[str] = ..., delivery: _Optional[int] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Leases(_message.Message):
    __slots__ = ["clock", "generation", "leases", "subscriber", "topic"]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    LEASES_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBER_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    clock: _duration_pb2.Duration
    generation: int
    leases: _containers.RepeatedCompositeFieldContainer[_wakebell_pb2.Lease]
    subscriber: str
    topic: str
    def __init__(self, topic: _Optional[str] = ..., subscriber: _Optional[str] = ..., generation: _Optional[int] = ..., leases: _Optional[_Iterable[_Union[_wakebell_pb2.Lease, _Mapping]]] = ..., clock: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class LeasesEnded(_message.Message):
    __slots__ = ["ended", "generation", "subscriber", "subscription", "topic"]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBER_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    ended: _containers.RepeatedCompositeFieldContainer[_wakebell_pb2.LeaseEnded]
    generation: int
    subscriber: str
    subscription: _gateway_pb2.Error
    topic: str
    def __init__(self, topic: _Optional[str] = ..., subscriber: _Optional[str] = ..., generation: _Optional[int] = ..., ended: _Optional[_Iterable[_Union[_wakebell_pb2.LeaseEnded, _Mapping]]] = ..., subscription: _Optional[_Union[_gateway_pb2.Error, _Mapping]] = ...) -> None: ...

class LeasesExtended(_message.Message):
    __slots__ = ["clock", "extended", "generation", "subscriber", "topic"]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    EXTENDED_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBER_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    clock: _duration_pb2.Duration
    extended: _containers.RepeatedCompositeFieldContainer[LeaseExtended]
    generation: int
    subscriber: str
    topic: str
    def __init__(self, topic: _Optional[str] = ..., subscriber: _Optional[str] = ..., generation: _Optional[int] = ..., extended: _Optional[_Iterable[_Union[LeaseExtended, _Mapping]]] = ..., clock: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Replies(_message.Message):
    __slots__ = ["replies"]
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    replies: _containers.RepeatedCompositeFieldContainer[Reply]
    def __init__(self, replies: _Optional[_Iterable[_Union[Reply, _Mapping]]] = ...) -> None: ...

class Reply(_message.Message):
    __slots__ = ["add_parts", "cancel", "cancel_join", "close_join", "delete_recurring", "enable_recurring", "error", "extend_turn", "get_join", "get_recurring", "get_timer", "get_topic_stats", "guard_turn", "keep", "leases", "leases_ended", "leases_extended", "list_parts", "list_recurring", "list_timers", "preview_recurring", "publish", "put_recurring", "release_turn", "reschedule", "run_now", "run_recurring", "schedule", "schedule_batch", "subscribe", "turn", "turn_lost", "turn_refused", "unsubscribe"]
    ADD_PARTS_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    CANCEL_JOIN_FIELD_NUMBER: _ClassVar[int]
    CLOSE_JOIN_FIELD_NUMBER: _ClassVar[int]
    DELETE_RECURRING_FIELD_NUMBER: _ClassVar[int]
    ENABLE_RECURRING_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    EXTEND_TURN_FIELD_NUMBER: _ClassVar[int]
    GET_JOIN_FIELD_NUMBER: _ClassVar[int]
    GET_RECURRING_FIELD_NUMBER: _ClassVar[int]
    GET_TIMER_FIELD_NUMBER: _ClassVar[int]
    GET_TOPIC_STATS_FIELD_NUMBER: _ClassVar[int]
    GUARD_TURN_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    LEASES_ENDED_FIELD_NUMBER: _ClassVar[int]
    LEASES_EXTENDED_FIELD_NUMBER: _ClassVar[int]
    LEASES_FIELD_NUMBER: _ClassVar[int]
    LIST_PARTS_FIELD_NUMBER: _ClassVar[int]
    LIST_RECURRING_FIELD_NUMBER: _ClassVar[int]
    LIST_TIMERS_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_RECURRING_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_FIELD_NUMBER: _ClassVar[int]
    PUT_RECURRING_FIELD_NUMBER: _ClassVar[int]
    RELEASE_TURN_FIELD_NUMBER: _ClassVar[int]
    RESCHEDULE_FIELD_NUMBER: _ClassVar[int]
    RUN_NOW_FIELD_NUMBER: _ClassVar[int]
    RUN_RECURRING_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_BATCH_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBE_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    TURN_LOST_FIELD_NUMBER: _ClassVar[int]
    TURN_REFUSED_FIELD_NUMBER: _ClassVar[int]
    UNSUBSCRIBE_FIELD_NUMBER: _ClassVar[int]
    add_parts: _endings_pb2.AddPartsResponse
    cancel: _gateway_pb2.CancelResponse
    cancel_join: _endings_pb2.CancelJoinResponse
    close_join: _endings_pb2.CloseJoinResponse
    delete_recurring: _recurring_pb2.DeleteRecurringResponse
    enable_recurring: _recurring_pb2.EnableRecurringResponse
    error: _gateway_pb2.Error
    extend_turn: _gates_pb2.ExtendTurnResponse
    get_join: _endings_pb2.GetJoinResponse
    get_recurring: _recurring_pb2.GetRecurringResponse
    get_timer: _gateway_pb2.GetTimerResponse
    get_topic_stats: _gateway_pb2.GetTopicStatsResponse
    guard_turn: _gates_pb2.GuardTurnResponse
    keep: _wakebell_pb2.KeepResponse
    leases: Leases
    leases_ended: LeasesEnded
    leases_extended: LeasesExtended
    list_parts: _endings_pb2.ListPartsResponse
    list_recurring: _recurring_pb2.ListRecurringResponse
    list_timers: _gateway_pb2.ListTimersResponse
    preview_recurring: _recurring_pb2.PreviewRecurringResponse
    publish: _queues_pb2.PublishResponse
    put_recurring: _recurring_pb2.PutRecurringResponse
    release_turn: _gates_pb2.ReleaseTurnResponse
    reschedule: _gateway_pb2.RescheduleResponse
    run_now: _gateway_pb2.RunNowResponse
    run_recurring: _recurring_pb2.RunRecurringResponse
    schedule: _gateway_pb2.ScheduleResponse
    schedule_batch: _gateway_pb2.ScheduleBatchResponse
    subscribe: SubscribeResponse
    turn: _gates_pb2.Turn
    turn_lost: _gates_pb2.TurnLost
    turn_refused: _gates_pb2.TurnRefused
    unsubscribe: UnsubscribeResponse
    def __init__(self, error: _Optional[_Union[_gateway_pb2.Error, _Mapping]] = ..., schedule: _Optional[_Union[_gateway_pb2.ScheduleResponse, _Mapping]] = ..., schedule_batch: _Optional[_Union[_gateway_pb2.ScheduleBatchResponse, _Mapping]] = ..., cancel: _Optional[_Union[_gateway_pb2.CancelResponse, _Mapping]] = ..., get_timer: _Optional[_Union[_gateway_pb2.GetTimerResponse, _Mapping]] = ..., list_timers: _Optional[_Union[_gateway_pb2.ListTimersResponse, _Mapping]] = ..., reschedule: _Optional[_Union[_gateway_pb2.RescheduleResponse, _Mapping]] = ..., run_now: _Optional[_Union[_gateway_pb2.RunNowResponse, _Mapping]] = ..., get_topic_stats: _Optional[_Union[_gateway_pb2.GetTopicStatsResponse, _Mapping]] = ..., subscribe: _Optional[_Union[SubscribeResponse, _Mapping]] = ..., unsubscribe: _Optional[_Union[UnsubscribeResponse, _Mapping]] = ..., leases: _Optional[_Union[Leases, _Mapping]] = ..., leases_extended: _Optional[_Union[LeasesExtended, _Mapping]] = ..., leases_ended: _Optional[_Union[LeasesEnded, _Mapping]] = ..., put_recurring: _Optional[_Union[_recurring_pb2.PutRecurringResponse, _Mapping]] = ..., delete_recurring: _Optional[_Union[_recurring_pb2.DeleteRecurringResponse, _Mapping]] = ..., enable_recurring: _Optional[_Union[_recurring_pb2.EnableRecurringResponse, _Mapping]] = ..., run_recurring: _Optional[_Union[_recurring_pb2.RunRecurringResponse, _Mapping]] = ..., get_recurring: _Optional[_Union[_recurring_pb2.GetRecurringResponse, _Mapping]] = ..., list_recurring: _Optional[_Union[_recurring_pb2.ListRecurringResponse, _Mapping]] = ..., preview_recurring: _Optional[_Union[_recurring_pb2.PreviewRecurringResponse, _Mapping]] = ..., guard_turn: _Optional[_Union[_gates_pb2.GuardTurnResponse, _Mapping]] = ..., publish: _Optional[_Union[_queues_pb2.PublishResponse, _Mapping]] = ..., turn: _Optional[_Union[_gates_pb2.Turn, _Mapping]] = ..., turn_refused: _Optional[_Union[_gates_pb2.TurnRefused, _Mapping]] = ..., turn_lost: _Optional[_Union[_gates_pb2.TurnLost, _Mapping]] = ..., extend_turn: _Optional[_Union[_gates_pb2.ExtendTurnResponse, _Mapping]] = ..., release_turn: _Optional[_Union[_gates_pb2.ReleaseTurnResponse, _Mapping]] = ..., get_join: _Optional[_Union[_endings_pb2.GetJoinResponse, _Mapping]] = ..., list_parts: _Optional[_Union[_endings_pb2.ListPartsResponse, _Mapping]] = ..., add_parts: _Optional[_Union[_endings_pb2.AddPartsResponse, _Mapping]] = ..., close_join: _Optional[_Union[_endings_pb2.CloseJoinResponse, _Mapping]] = ..., cancel_join: _Optional[_Union[_endings_pb2.CancelJoinResponse, _Mapping]] = ..., keep: _Optional[_Union[_wakebell_pb2.KeepResponse, _Mapping]] = ...) -> None: ...

class SubscribeRequest(_message.Message):
    __slots__ = ["clock", "credits", "instance", "queue", "request", "subscriber", "timeout", "topic"]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBER_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    clock: _duration_pb2.Duration
    credits: int
    instance: str
    queue: _queues_pb2.Queue
    request: int
    subscriber: str
    timeout: _duration_pb2.Duration
    topic: str
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., topic: _Optional[str] = ..., subscriber: _Optional[str] = ..., credits: _Optional[int] = ..., queue: _Optional[_Union[_queues_pb2.Queue, _Mapping]] = ..., clock: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., instance: _Optional[str] = ...) -> None: ...

class SubscribeResponse(_message.Message):
    __slots__ = ["generation", "held", "request"]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    generation: int
    held: _containers.RepeatedCompositeFieldContainer[_wakebell_pb2.Lease]
    request: int
    def __init__(self, request: _Optional[int] = ..., generation: _Optional[int] = ..., held: _Optional[_Iterable[_Union[_wakebell_pb2.Lease, _Mapping]]] = ...) -> None: ...

class UnsubscribeRequest(_message.Message):
    __slots__ = ["request", "running", "subscriber", "timeout", "topic"]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBER_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    request: int
    running: _containers.RepeatedScalarFieldContainer[int]
    subscriber: str
    timeout: _duration_pb2.Duration
    topic: str
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., topic: _Optional[str] = ..., subscriber: _Optional[str] = ..., running: _Optional[_Iterable[int]] = ...) -> None: ...

class UnsubscribeResponse(_message.Message):
    __slots__ = ["request"]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    request: int
    def __init__(self, request: _Optional[int] = ...) -> None: ...

class Verdict(_message.Message):
    __slots__ = ["ack", "extend", "id", "nack", "reject", "release"]
    ACK_FIELD_NUMBER: _ClassVar[int]
    EXTEND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    NACK_FIELD_NUMBER: _ClassVar[int]
    REJECT_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    ack: _wakebell_pb2.Ack
    extend: _wakebell_pb2.Extend
    id: str
    nack: _wakebell_pb2.Nack
    reject: _wakebell_pb2.Reject
    release: _wakebell_pb2.Release
    def __init__(self, id: _Optional[str] = ..., ack: _Optional[_Union[_wakebell_pb2.Ack, _Mapping]] = ..., nack: _Optional[_Union[_wakebell_pb2.Nack, _Mapping]] = ..., reject: _Optional[_Union[_wakebell_pb2.Reject, _Mapping]] = ..., release: _Optional[_Union[_wakebell_pb2.Release, _Mapping]] = ..., extend: _Optional[_Union[_wakebell_pb2.Extend, _Mapping]] = ...) -> None: ...

class Verdicts(_message.Message):
    __slots__ = ["clock", "subscriber", "topic", "verdicts"]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBER_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    clock: _duration_pb2.Duration
    subscriber: str
    topic: str
    verdicts: _containers.RepeatedCompositeFieldContainer[Verdict]
    def __init__(self, topic: _Optional[str] = ..., subscriber: _Optional[str] = ..., verdicts: _Optional[_Iterable[_Union[Verdict, _Mapping]]] = ..., clock: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...
