from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

CODE_CHANNEL_DENIED: Code
CODE_CONFLICT: Code
CODE_DEADLINE: Code
CODE_DENIED: Code
CODE_DRAINING: Code
CODE_FENCE_REGRESSED: Code
CODE_FENCE_STALE: Code
CODE_FENCE_UNKNOWN: Code
CODE_FORBIDDEN: Code
CODE_GATES_CLOSED: Code
CODE_GATE_EXHAUSTED: Code
CODE_GATE_HELD: Code
CODE_INTERNAL: Code
CODE_INVALID: Code
CODE_LEASE_LOST: Code
CODE_MEMORY_FULL: Code
CODE_NOT_FOUND: Code
CODE_NO_SCHEDULE: Code
CODE_OVERLOADED: Code
CODE_TOO_LARGE: Code
CODE_TURN_LOST: Code
CODE_UNAVAILABLE: Code
CODE_UNSPECIFIED: Code
CODE_UNSUPPORTED: Code
CODE_WRONG_TYPE: Code
DESCRIPTOR: _descriptor.FileDescriptor
OUTCOME_ALREADY_DONE: Outcome
OUTCOME_CREATED: Outcome
OUTCOME_KEPT_EARLIER: Outcome
OUTCOME_KEPT_PENDING: Outcome
OUTCOME_KEPT_RUNNING: Outcome
OUTCOME_MOVED: Outcome
OUTCOME_REPLACED: Outcome
OUTCOME_SUPERSEDED: Outcome
OUTCOME_UNSPECIFIED: Outcome
POLICY_EARLIEST: Policy
POLICY_KEEP: Policy
POLICY_REPLACE: Policy
POLICY_UNSPECIFIED: Policy
PRESENCE_ABSENT: Presence
PRESENCE_PENDING: Presence
PRESENCE_RUNNING: Presence
PRESENCE_UNSPECIFIED: Presence
STATE_NEVER: State
STATE_PARKED: State
STATE_PENDING: State
STATE_RETRYING: State
STATE_RUNNING: State
STATE_UNSPECIFIED: State

class CancelRequest(_message.Message):
    __slots__ = ["ids", "key", "request", "timeout", "topic"]
    IDS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    key: str
    request: int
    timeout: _duration_pb2.Duration
    topic: str
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., topic: _Optional[str] = ..., ids: _Optional[_Iterable[str]] = ..., key: _Optional[str] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ["found", "request"]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    found: _containers.RepeatedScalarFieldContainer[Presence]
    request: int
    def __init__(self, request: _Optional[int] = ..., found: _Optional[_Iterable[_Union[Presence, str]]] = ...) -> None: ...

class Content(_message.Message):
    __slots__ = ["body", "content_type", "correlation_id", "headers", "reply_to"]
    class HeadersEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    BODY_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    REPLY_TO_FIELD_NUMBER: _ClassVar[int]
    body: bytes
    content_type: str
    correlation_id: str
    headers: _containers.ScalarMap[str, str]
    reply_to: str
    def __init__(self, body: _Optional[bytes] = ..., content_type: _Optional[str] = ..., correlation_id: _Optional[str] = ..., reply_to: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Debounce(_message.Message):
    __slots__ = ["delay", "limit"]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    delay: _duration_pb2.Duration
    limit: _duration_pb2.Duration
    def __init__(self, delay: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., limit: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ["code", "message", "request"]
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    code: Code
    message: str
    request: int
    def __init__(self, request: _Optional[int] = ..., code: _Optional[_Union[Code, str]] = ..., message: _Optional[str] = ...) -> None: ...

class GetTimerRequest(_message.Message):
    __slots__ = ["id", "request", "timeout", "topic", "without_content"]
    ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_CONTENT_FIELD_NUMBER: _ClassVar[int]
    id: str
    request: int
    timeout: _duration_pb2.Duration
    topic: str
    without_content: bool
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., topic: _Optional[str] = ..., id: _Optional[str] = ..., without_content: bool = ...) -> None: ...

class GetTimerResponse(_message.Message):
    __slots__ = ["request", "timer"]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMER_FIELD_NUMBER: _ClassVar[int]
    request: int
    timer: Timer
    def __init__(self, request: _Optional[int] = ..., timer: _Optional[_Union[Timer, _Mapping]] = ...) -> None: ...

class GetTopicStatsRequest(_message.Message):
    __slots__ = ["request", "timeout", "topic"]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    request: int
    timeout: _duration_pb2.Duration
    topic: str
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., topic: _Optional[str] = ...) -> None: ...

class GetTopicStatsResponse(_message.Message):
    __slots__ = ["request", "stats"]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    request: int
    stats: TopicStats
    def __init__(self, request: _Optional[int] = ..., stats: _Optional[_Union[TopicStats, _Mapping]] = ...) -> None: ...

class ListTimersRequest(_message.Message):
    __slots__ = ["after", "due_before", "limit", "request", "running", "timeout", "topic"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    DUE_BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    after: str
    due_before: _timestamp_pb2.Timestamp
    limit: int
    request: int
    running: bool
    timeout: _duration_pb2.Duration
    topic: str
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., topic: _Optional[str] = ..., due_before: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., running: bool = ..., limit: _Optional[int] = ..., after: _Optional[str] = ...) -> None: ...

class ListTimersResponse(_message.Message):
    __slots__ = ["next", "request", "timers"]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMERS_FIELD_NUMBER: _ClassVar[int]
    next: str
    request: int
    timers: _containers.RepeatedCompositeFieldContainer[Timer]
    def __init__(self, request: _Optional[int] = ..., timers: _Optional[_Iterable[_Union[Timer, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class RescheduleRequest(_message.Message):
    __slots__ = ["at", "id", "request", "timeout", "topic"]
    AT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    IN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    at: _timestamp_pb2.Timestamp
    id: str
    request: int
    timeout: _duration_pb2.Duration
    topic: str
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., topic: _Optional[str] = ..., id: _Optional[str] = ..., at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., **kwargs) -> None: ...

class RescheduleResponse(_message.Message):
    __slots__ = ["due", "found", "id", "outcome", "request"]
    DUE_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    due: _timestamp_pb2.Timestamp
    found: _timestamp_pb2.Timestamp
    id: str
    outcome: Outcome
    request: int
    def __init__(self, request: _Optional[int] = ..., id: _Optional[str] = ..., due: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., found: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RunNowRequest(_message.Message):
    __slots__ = ["id", "request", "timeout", "topic"]
    ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    id: str
    request: int
    timeout: _duration_pb2.Duration
    topic: str
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., topic: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class RunNowResponse(_message.Message):
    __slots__ = ["found", "request"]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    found: Presence
    request: int
    def __init__(self, request: _Optional[int] = ..., found: _Optional[_Union[Presence, str]] = ...) -> None: ...

class ScheduleBatchRequest(_message.Message):
    __slots__ = ["key", "request", "timeout", "timers", "trace"]
    class TraceEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    KEY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TIMERS_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    key: str
    request: int
    timeout: _duration_pb2.Duration
    timers: _containers.RepeatedCompositeFieldContainer[ScheduleRequest]
    trace: _containers.ScalarMap[str, str]
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., timers: _Optional[_Iterable[_Union[ScheduleRequest, _Mapping]]] = ..., key: _Optional[str] = ..., trace: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ScheduleBatchResponse(_message.Message):
    __slots__ = ["request", "timers"]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMERS_FIELD_NUMBER: _ClassVar[int]
    request: int
    timers: _containers.RepeatedCompositeFieldContainer[ScheduleResponse]
    def __init__(self, request: _Optional[int] = ..., timers: _Optional[_Iterable[_Union[ScheduleResponse, _Mapping]]] = ...) -> None: ...

class ScheduleRequest(_message.Message):
    __slots__ = ["after", "at", "body", "content_type", "correlation_id", "debounce", "encoded", "headers", "id", "if_exists", "join_name", "key", "once", "open", "part_of", "request", "timeout", "timer_key", "topic", "trace"]
    class HeadersEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class TraceEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    AFTER_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    DEBOUNCE_FIELD_NUMBER: _ClassVar[int]
    ENCODED_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    IF_EXISTS_FIELD_NUMBER: _ClassVar[int]
    IN_FIELD_NUMBER: _ClassVar[int]
    JOIN_NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    ONCE_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    PART_OF_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TIMER_KEY_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    after: _containers.RepeatedCompositeFieldContainer[TimerPart]
    at: _timestamp_pb2.Timestamp
    body: bytes
    content_type: str
    correlation_id: str
    debounce: Debounce
    encoded: bool
    headers: _containers.ScalarMap[str, str]
    id: str
    if_exists: Policy
    join_name: str
    key: str
    once: _duration_pb2.Duration
    open: bool
    part_of: _containers.RepeatedCompositeFieldContainer[TimerPart]
    request: int
    timeout: _duration_pb2.Duration
    timer_key: bytes
    topic: str
    trace: _containers.ScalarMap[str, str]
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., topic: _Optional[str] = ..., id: _Optional[str] = ..., body: _Optional[bytes] = ..., content_type: _Optional[str] = ..., correlation_id: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., debounce: _Optional[_Union[Debounce, _Mapping]] = ..., if_exists: _Optional[_Union[Policy, str]] = ..., once: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., key: _Optional[str] = ..., trace: _Optional[_Mapping[str, str]] = ..., encoded: bool = ..., timer_key: _Optional[bytes] = ..., after: _Optional[_Iterable[_Union[TimerPart, _Mapping]]] = ..., open: bool = ..., part_of: _Optional[_Iterable[_Union[TimerPart, _Mapping]]] = ..., join_name: _Optional[str] = ..., **kwargs) -> None: ...

class ScheduleResponse(_message.Message):
    __slots__ = ["due", "found", "id", "outcome", "request"]
    DUE_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    due: _timestamp_pb2.Timestamp
    found: _timestamp_pb2.Timestamp
    id: str
    outcome: Outcome
    request: int
    def __init__(self, request: _Optional[int] = ..., id: _Optional[str] = ..., due: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., found: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Timer(_message.Message):
    __slots__ = ["activation", "attempts", "content", "cursor", "due", "failures", "id", "key", "last_error", "state"]
    ACTIVATION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    DUE_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    activation: _timestamp_pb2.Timestamp
    attempts: int
    content: Content
    cursor: str
    due: _timestamp_pb2.Timestamp
    failures: int
    id: str
    key: bytes
    last_error: str
    state: State
    def __init__(self, id: _Optional[str] = ..., state: _Optional[_Union[State, str]] = ..., due: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., activation: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., attempts: _Optional[int] = ..., failures: _Optional[int] = ..., last_error: _Optional[str] = ..., content: _Optional[_Union[Content, _Mapping]] = ..., cursor: _Optional[str] = ..., key: _Optional[bytes] = ...) -> None: ...

class TimerPart(_message.Message):
    __slots__ = ["id", "topic"]
    ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    id: str
    topic: str
    def __init__(self, topic: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class TopicStats(_message.Message):
    __slots__ = ["dead", "due", "estimated", "lag", "leased", "oldest_due", "parked", "paused_at", "paused_until", "pending", "retrying", "total"]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    DUE_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_FIELD_NUMBER: _ClassVar[int]
    LAG_FIELD_NUMBER: _ClassVar[int]
    LEASED_FIELD_NUMBER: _ClassVar[int]
    OLDEST_DUE_FIELD_NUMBER: _ClassVar[int]
    PARKED_FIELD_NUMBER: _ClassVar[int]
    PAUSED_AT_FIELD_NUMBER: _ClassVar[int]
    PAUSED_UNTIL_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    RETRYING_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    dead: int
    due: int
    estimated: bool
    lag: _duration_pb2.Duration
    leased: int
    oldest_due: _timestamp_pb2.Timestamp
    parked: int
    paused_at: _timestamp_pb2.Timestamp
    paused_until: _timestamp_pb2.Timestamp
    pending: int
    retrying: int
    total: int
    def __init__(self, total: _Optional[int] = ..., pending: _Optional[int] = ..., due: _Optional[int] = ..., leased: _Optional[int] = ..., retrying: _Optional[int] = ..., parked: _Optional[int] = ..., dead: _Optional[int] = ..., estimated: bool = ..., oldest_due: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., lag: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., paused_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., paused_until: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Code(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class Policy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class Presence(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
