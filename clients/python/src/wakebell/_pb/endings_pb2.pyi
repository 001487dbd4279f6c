from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from wakebell._pb import gateway_pb2 as _gateway_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AddPartsRequest(_message.Message):
    __slots__ = ["id", "parts", "request", "timeout", "topic"]
    ID_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    id: str
    parts: _containers.RepeatedCompositeFieldContainer[_gateway_pb2.TimerPart]
    request: int
    timeout: _duration_pb2.Duration
    topic: str
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., topic: _Optional[str] = ..., id: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[_gateway_pb2.TimerPart, _Mapping]]] = ...) -> None: ...

class AddPartsResponse(_message.Message):
    __slots__ = ["request"]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    request: int
    def __init__(self, request: _Optional[int] = ...) -> None: ...

class CancelJoinRequest(_message.Message):
    __slots__ = ["id", "request", "timeout", "topic", "topics"]
    ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    id: str
    request: int
    timeout: _duration_pb2.Duration
    topic: str
    topics: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., topic: _Optional[str] = ..., id: _Optional[str] = ..., topics: _Optional[_Iterable[str]] = ...) -> None: ...

class CancelJoinResponse(_message.Message):
    __slots__ = ["parts", "request"]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    parts: int
    request: int
    def __init__(self, request: _Optional[int] = ..., parts: _Optional[int] = ...) -> None: ...

class CloseJoinRequest(_message.Message):
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

class CloseJoinResponse(_message.Message):
    __slots__ = ["request"]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    request: int
    def __init__(self, request: _Optional[int] = ...) -> None: ...

class GetJoinRequest(_message.Message):
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

class GetJoinResponse(_message.Message):
    __slots__ = ["join", "request"]
    JOIN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    join: Join
    request: int
    def __init__(self, request: _Optional[int] = ..., join: _Optional[_Union[Join, _Mapping]] = ...) -> None: ...

class Join(_message.Message):
    __slots__ = ["cancelled", "dead", "done", "missing", "open", "parts"]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    cancelled: int
    dead: int
    done: int
    missing: int
    open: bool
    parts: int
    def __init__(self, open: bool = ..., parts: _Optional[int] = ..., done: _Optional[int] = ..., dead: _Optional[int] = ..., cancelled: _Optional[int] = ..., missing: _Optional[int] = ...) -> None: ...

class ListPartsRequest(_message.Message):
    __slots__ = ["after", "id", "join_name", "limit", "request", "running", "timeout", "topic"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    JOIN_NAME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    after: str
    id: str
    join_name: str
    limit: int
    request: int
    running: bool
    timeout: _duration_pb2.Duration
    topic: str
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., topic: _Optional[str] = ..., id: _Optional[str] = ..., join_name: _Optional[str] = ..., running: bool = ..., limit: _Optional[int] = ..., after: _Optional[str] = ...) -> None: ...

class ListPartsResponse(_message.Message):
    __slots__ = ["next", "parts", "request"]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    next: str
    parts: _containers.RepeatedCompositeFieldContainer[PartEnd]
    request: int
    def __init__(self, request: _Optional[int] = ..., parts: _Optional[_Iterable[_Union[PartEnd, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class PartEnd(_message.Message):
    __slots__ = ["at", "cursor", "end", "part", "reason", "result"]
    AT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    at: _timestamp_pb2.Timestamp
    cursor: str
    end: str
    part: _gateway_pb2.TimerPart
    reason: str
    result: TimerResult
    def __init__(self, part: _Optional[_Union[_gateway_pb2.TimerPart, _Mapping]] = ..., end: _Optional[str] = ..., reason: _Optional[str] = ..., at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., result: _Optional[_Union[TimerResult, _Mapping]] = ..., cursor: _Optional[str] = ...) -> None: ...

class TimerProgress(_message.Message):
    __slots__ = ["at", "attempt", "fraction", "note"]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    FRACTION_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    at: _timestamp_pb2.Timestamp
    attempt: int
    fraction: float
    note: str
    def __init__(self, fraction: _Optional[float] = ..., note: _Optional[str] = ..., at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., attempt: _Optional[int] = ...) -> None: ...

class TimerResult(_message.Message):
    __slots__ = ["activation", "at", "attempt", "content"]
    ACTIVATION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    activation: _timestamp_pb2.Timestamp
    at: _timestamp_pb2.Timestamp
    attempt: int
    content: _gateway_pb2.Content
    def __init__(self, content: _Optional[_Union[_gateway_pb2.Content, _Mapping]] = ..., attempt: _Optional[int] = ..., activation: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class WaitTimerRequest(_message.Message):
    __slots__ = ["id", "report", "topic"]
    ID_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    id: str
    report: bool
    topic: str
    def __init__(self, topic: _Optional[str] = ..., id: _Optional[str] = ..., report: bool = ...) -> None: ...

class WaitTimerResponse(_message.Message):
    __slots__ = ["end", "progress", "reason", "result"]
    END_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    end: str
    progress: TimerProgress
    reason: str
    result: TimerResult
    def __init__(self, end: _Optional[str] = ..., reason: _Optional[str] = ..., progress: _Optional[_Union[TimerProgress, _Mapping]] = ..., result: _Optional[_Union[TimerResult, _Mapping]] = ...) -> None: ...
