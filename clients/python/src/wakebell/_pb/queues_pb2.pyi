from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PublishRequest(_message.Message):
    __slots__ = ["cap", "drop_oldest", "frees_keys", "messages", "name", "queue", "request", "timeout", "trace", "window"]
    class TraceEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CAP_FIELD_NUMBER: _ClassVar[int]
    DROP_OLDEST_FIELD_NUMBER: _ClassVar[int]
    FREES_KEYS_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    cap: int
    drop_oldest: bool
    frees_keys: bool
    messages: _containers.RepeatedCompositeFieldContainer[QueueMessage]
    name: str
    queue: Queue
    request: int
    timeout: _duration_pb2.Duration
    trace: _containers.ScalarMap[str, str]
    window: _duration_pb2.Duration
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., name: _Optional[str] = ..., queue: _Optional[_Union[Queue, _Mapping]] = ..., messages: _Optional[_Iterable[_Union[QueueMessage, _Mapping]]] = ..., window: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., cap: _Optional[int] = ..., drop_oldest: bool = ..., frees_keys: bool = ..., trace: _Optional[_Mapping[str, str]] = ...) -> None: ...

class PublishResponse(_message.Message):
    __slots__ = ["messages", "request"]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[PublishedMessage]
    request: int
    def __init__(self, request: _Optional[int] = ..., messages: _Optional[_Iterable[_Union[PublishedMessage, _Mapping]]] = ...) -> None: ...

class PublishedMessage(_message.Message):
    __slots__ = ["fresh", "id"]
    FRESH_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    fresh: bool
    id: str
    def __init__(self, id: _Optional[str] = ..., fresh: bool = ...) -> None: ...

class Queue(_message.Message):
    __slots__ = ["dead_letters", "separator"]
    DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    dead_letters: str
    separator: str
    def __init__(self, separator: _Optional[str] = ..., dead_letters: _Optional[str] = ...) -> None: ...

class QueueMessage(_message.Message):
    __slots__ = ["body", "headers", "key", "tail"]
    class HeadersEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    BODY_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TAIL_FIELD_NUMBER: _ClassVar[int]
    body: bytes
    headers: _containers.ScalarMap[str, str]
    key: str
    tail: str
    def __init__(self, body: _Optional[bytes] = ..., key: _Optional[str] = ..., tail: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ...) -> None: ...
