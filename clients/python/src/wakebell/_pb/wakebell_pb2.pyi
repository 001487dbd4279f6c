from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from wakebell._pb import gateway_pb2 as _gateway_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
LEASE_END_CANCELLED: LeaseEnd
LEASE_END_DRAINING: LeaseEnd
LEASE_END_TOO_OLD: LeaseEnd
LEASE_END_UNSPECIFIED: LeaseEnd

class Ack(_message.Message):
    __slots__ = ["delivery", "encoded", "result"]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    ENCODED_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    delivery: int
    encoded: bool
    result: _gateway_pb2.Content
    def __init__(self, delivery: _Optional[int] = ..., result: _Optional[_Union[_gateway_pb2.Content, _Mapping]] = ..., encoded: bool = ...) -> None: ...

class Drain(_message.Message):
    __slots__ = ["timeout"]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    timeout: _duration_pb2.Duration
    def __init__(self, timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Drained(_message.Message):
    __slots__ = ["topics"]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[TopicDrained]
    def __init__(self, topics: _Optional[_Iterable[_Union[TopicDrained, _Mapping]]] = ...) -> None: ...

class Extend(_message.Message):
    __slots__ = ["delivery"]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    delivery: int
    def __init__(self, delivery: _Optional[int] = ...) -> None: ...

class KeepRequest(_message.Message):
    __slots__ = ["checkpoint", "delivery", "encoded", "id", "progress", "request", "subscriber", "timeout", "topic"]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    ENCODED_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBER_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    checkpoint: _gateway_pb2.Content
    delivery: int
    encoded: bool
    id: str
    progress: Progress
    request: int
    subscriber: str
    timeout: _duration_pb2.Duration
    topic: str
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., topic: _Optional[str] = ..., subscriber: _Optional[str] = ..., id: _Optional[str] = ..., delivery: _Optional[int] = ..., checkpoint: _Optional[_Union[_gateway_pb2.Content, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., encoded: bool = ...) -> None: ...

class KeepResponse(_message.Message):
    __slots__ = ["request"]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    request: int
    def __init__(self, request: _Optional[int] = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ["activation", "attempt", "body", "content_type", "correlation_id", "delivered", "delivery", "failures", "headers", "id", "reply_to", "topic", "trace", "ttl"]
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
    ACTIVATION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    REPLY_TO_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    activation: _timestamp_pb2.Timestamp
    attempt: int
    body: bytes
    content_type: str
    correlation_id: str
    delivered: _timestamp_pb2.Timestamp
    delivery: int
    failures: int
    headers: _containers.ScalarMap[str, str]
    id: str
    reply_to: str
    topic: str
    trace: _containers.ScalarMap[str, str]
    ttl: _duration_pb2.Duration
    def __init__(self, delivery: _Optional[int] = ..., topic: _Optional[str] = ..., id: _Optional[str] = ..., body: _Optional[bytes] = ..., content_type: _Optional[str] = ..., correlation_id: _Optional[str] = ..., reply_to: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., activation: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., delivered: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., attempt: _Optional[int] = ..., failures: _Optional[int] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., trace: _Optional[_Mapping[str, str]] = ...) -> None: ...

class LeaseBatch(_message.Message):
    __slots__ = ["delivery", "leases", "topic"]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    LEASES_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    delivery: int
    leases: _containers.RepeatedCompositeFieldContainer[Lease]
    topic: str
    def __init__(self, delivery: _Optional[int] = ..., topic: _Optional[str] = ..., leases: _Optional[_Iterable[_Union[Lease, _Mapping]]] = ...) -> None: ...

class LeaseEnded(_message.Message):
    __slots__ = ["delivery", "id", "reason"]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    delivery: int
    id: str
    reason: LeaseEnd
    def __init__(self, id: _Optional[str] = ..., delivery: _Optional[int] = ..., reason: _Optional[_Union[LeaseEnd, str]] = ...) -> None: ...

class Nack(_message.Message):
    __slots__ = ["delay", "delivery", "reason", "snooze"]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SNOOZE_FIELD_NUMBER: _ClassVar[int]
    delay: _duration_pb2.Duration
    delivery: int
    reason: str
    snooze: bool
    def __init__(self, delivery: _Optional[int] = ..., reason: _Optional[str] = ..., delay: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., snooze: bool = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ["fraction", "note"]
    FRACTION_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    fraction: float
    note: str
    def __init__(self, fraction: _Optional[float] = ..., note: _Optional[str] = ...) -> None: ...

class Reject(_message.Message):
    __slots__ = ["delivery", "reason"]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    delivery: int
    reason: str
    def __init__(self, delivery: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Release(_message.Message):
    __slots__ = ["delivery"]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    delivery: int
    def __init__(self, delivery: _Optional[int] = ...) -> None: ...

class TopicDrained(_message.Message):
    __slots__ = ["topic", "unfinished", "unsettled"]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    UNFINISHED_FIELD_NUMBER: _ClassVar[int]
    UNSETTLED_FIELD_NUMBER: _ClassVar[int]
    topic: str
    unfinished: _containers.RepeatedScalarFieldContainer[str]
    unsettled: int
    def __init__(self, topic: _Optional[str] = ..., unfinished: _Optional[_Iterable[str]] = ..., unsettled: _Optional[int] = ...) -> None: ...

class LeaseEnd(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
