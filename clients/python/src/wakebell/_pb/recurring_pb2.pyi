from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CeleryMessage(_message.Message):
    __slots__ = ["args", "kwargs", "options"]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    KWARGS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    args: bytes
    kwargs: bytes
    options: bytes
    def __init__(self, args: _Optional[bytes] = ..., kwargs: _Optional[bytes] = ..., options: _Optional[bytes] = ...) -> None: ...

class Crontab(_message.Message):
    __slots__ = ["day_of_month", "day_of_week", "hour", "minute", "month"]
    DAY_OF_MONTH_FIELD_NUMBER: _ClassVar[int]
    DAY_OF_WEEK_FIELD_NUMBER: _ClassVar[int]
    HOUR_FIELD_NUMBER: _ClassVar[int]
    MINUTE_FIELD_NUMBER: _ClassVar[int]
    MONTH_FIELD_NUMBER: _ClassVar[int]
    day_of_month: str
    day_of_week: str
    hour: str
    minute: str
    month: str
    def __init__(self, minute: _Optional[str] = ..., hour: _Optional[str] = ..., day_of_week: _Optional[str] = ..., day_of_month: _Optional[str] = ..., month: _Optional[str] = ...) -> None: ...

class DeleteRecurringRequest(_message.Message):
    __slots__ = ["name", "request", "timeout"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    name: str
    request: int
    timeout: _duration_pb2.Duration
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class DeleteRecurringResponse(_message.Message):
    __slots__ = ["request"]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    request: int
    def __init__(self, request: _Optional[int] = ...) -> None: ...

class EnableRecurringRequest(_message.Message):
    __slots__ = ["enabled", "name", "request", "timeout"]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    name: str
    request: int
    timeout: _duration_pb2.Duration
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., name: _Optional[str] = ..., enabled: bool = ...) -> None: ...

class EnableRecurringResponse(_message.Message):
    __slots__ = ["request"]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    request: int
    def __init__(self, request: _Optional[int] = ...) -> None: ...

class GetRecurringRequest(_message.Message):
    __slots__ = ["name", "request", "timeout"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    name: str
    request: int
    timeout: _duration_pb2.Duration
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class GetRecurringResponse(_message.Message):
    __slots__ = ["request", "schedule"]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    request: int
    schedule: RecurringState
    def __init__(self, request: _Optional[int] = ..., schedule: _Optional[_Union[RecurringState, _Mapping]] = ...) -> None: ...

class ListRecurringRequest(_message.Message):
    __slots__ = ["after", "limit", "request", "timeout"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    after: str
    limit: int
    request: int
    timeout: _duration_pb2.Duration
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListRecurringResponse(_message.Message):
    __slots__ = ["next", "request", "schedules"]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    next: str
    request: int
    schedules: _containers.RepeatedCompositeFieldContainer[RecurringState]
    def __init__(self, request: _Optional[int] = ..., schedules: _Optional[_Iterable[_Union[RecurringState, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class PreviewRecurringRequest(_message.Message):
    __slots__ = ["count", "name", "request", "timeout"]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    count: int
    name: str
    request: int
    timeout: _duration_pb2.Duration
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., name: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class PreviewRecurringResponse(_message.Message):
    __slots__ = ["instants", "request"]
    INSTANTS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    instants: _containers.RepeatedCompositeFieldContainer[_timestamp_pb2.Timestamp]
    request: int
    def __init__(self, request: _Optional[int] = ..., instants: _Optional[_Iterable[_Union[_timestamp_pb2.Timestamp, _Mapping]]] = ...) -> None: ...

class PutRecurringRequest(_message.Message):
    __slots__ = ["request", "schedules", "timeout", "trace"]
    class TraceEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    request: int
    schedules: _containers.RepeatedCompositeFieldContainer[Recurring]
    timeout: _duration_pb2.Duration
    trace: _containers.ScalarMap[str, str]
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., schedules: _Optional[_Iterable[_Union[Recurring, _Mapping]]] = ..., trace: _Optional[_Mapping[str, str]] = ...) -> None: ...

class PutRecurringResponse(_message.Message):
    __slots__ = ["request"]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    request: int
    def __init__(self, request: _Optional[int] = ...) -> None: ...

class Recurrence(_message.Message):
    __slots__ = ["cron", "crontab", "every", "headers", "jitter", "max_runs", "misfire", "misfire_limit", "overlap", "relative", "rrule", "skip_gaps", "start", "until", "zone"]
    class HeadersEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CRONTAB_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    EVERY_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    JITTER_FIELD_NUMBER: _ClassVar[int]
    MAX_RUNS_FIELD_NUMBER: _ClassVar[int]
    MISFIRE_FIELD_NUMBER: _ClassVar[int]
    MISFIRE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    RELATIVE_FIELD_NUMBER: _ClassVar[int]
    RRULE_FIELD_NUMBER: _ClassVar[int]
    SKIP_GAPS_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    cron: str
    crontab: Crontab
    every: _duration_pb2.Duration
    headers: _containers.ScalarMap[str, str]
    jitter: _duration_pb2.Duration
    max_runs: int
    misfire: str
    misfire_limit: int
    overlap: str
    relative: bool
    rrule: str
    skip_gaps: bool
    start: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    zone: str
    def __init__(self, every: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., cron: _Optional[str] = ..., crontab: _Optional[_Union[Crontab, _Mapping]] = ..., rrule: _Optional[str] = ..., relative: bool = ..., zone: _Optional[str] = ..., skip_gaps: bool = ..., jitter: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., start: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., max_runs: _Optional[int] = ..., misfire: _Optional[str] = ..., misfire_limit: _Optional[int] = ..., overlap: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Recurring(_message.Message):
    __slots__ = ["body", "celery", "content_type", "name", "topic", "when"]
    BODY_FIELD_NUMBER: _ClassVar[int]
    CELERY_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    WHEN_FIELD_NUMBER: _ClassVar[int]
    body: bytes
    celery: CeleryMessage
    content_type: str
    name: str
    topic: str
    when: Recurrence
    def __init__(self, name: _Optional[str] = ..., topic: _Optional[str] = ..., when: _Optional[_Union[Recurrence, _Mapping]] = ..., body: _Optional[bytes] = ..., content_type: _Optional[str] = ..., celery: _Optional[_Union[CeleryMessage, _Mapping]] = ...) -> None: ...

class RecurringState(_message.Message):
    __slots__ = ["celery", "fault", "last_run", "name", "next", "overdue", "paused", "recurrence", "rule", "runs", "topic"]
    CELERY_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    LAST_RUN_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    OVERDUE_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    RECURRENCE_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    celery: bool
    fault: str
    last_run: _timestamp_pb2.Timestamp
    name: str
    next: _timestamp_pb2.Timestamp
    overdue: _duration_pb2.Duration
    paused: bool
    recurrence: Recurrence
    rule: str
    runs: int
    topic: str
    def __init__(self, name: _Optional[str] = ..., topic: _Optional[str] = ..., rule: _Optional[str] = ..., recurrence: _Optional[_Union[Recurrence, _Mapping]] = ..., next: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., last_run: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., runs: _Optional[int] = ..., paused: bool = ..., celery: bool = ..., fault: _Optional[str] = ..., overdue: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class RunRecurringRequest(_message.Message):
    __slots__ = ["key", "name", "request", "timeout", "trace"]
    class TraceEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    KEY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    key: str
    name: str
    request: int
    timeout: _duration_pb2.Duration
    trace: _containers.ScalarMap[str, str]
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., name: _Optional[str] = ..., key: _Optional[str] = ..., trace: _Optional[_Mapping[str, str]] = ...) -> None: ...

class RunRecurringResponse(_message.Message):
    __slots__ = ["due", "fired", "name", "request", "run"]
    DUE_FIELD_NUMBER: _ClassVar[int]
    FIRED_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    due: _timestamp_pb2.Timestamp
    fired: _timestamp_pb2.Timestamp
    name: str
    request: int
    run: int
    def __init__(self, request: _Optional[int] = ..., name: _Optional[str] = ..., due: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., fired: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., run: _Optional[int] = ...) -> None: ...
