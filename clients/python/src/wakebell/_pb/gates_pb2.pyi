from google.protobuf import duration_pb2 as _duration_pb2
from wakebell._pb import gateway_pb2 as _gateway_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AcquireTurnRequest(_message.Message):
    __slots__ = ["gate", "place", "request", "timeout", "ttl"]
    GATE_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TRY_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    gate: str
    place: int
    request: int
    timeout: _duration_pb2.Duration
    ttl: _duration_pb2.Duration
    def __init__(self, gate: _Optional[str] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., request: _Optional[int] = ..., place: _Optional[int] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., **kwargs) -> None: ...

class ExtendTurnRequest(_message.Message):
    __slots__ = ["fence", "gate", "place", "request"]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    fence: int
    gate: str
    place: int
    request: int
    def __init__(self, gate: _Optional[str] = ..., fence: _Optional[int] = ..., request: _Optional[int] = ..., place: _Optional[int] = ...) -> None: ...

class ExtendTurnResponse(_message.Message):
    __slots__ = ["fence", "gate", "good", "request"]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    GOOD_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    fence: int
    gate: str
    good: _duration_pb2.Duration
    request: int
    def __init__(self, request: _Optional[int] = ..., gate: _Optional[str] = ..., fence: _Optional[int] = ..., good: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class GuardTurnRequest(_message.Message):
    __slots__ = ["fence", "gate", "request", "resource", "timeout"]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    fence: int
    gate: str
    request: int
    resource: str
    timeout: _duration_pb2.Duration
    def __init__(self, request: _Optional[int] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., gate: _Optional[str] = ..., resource: _Optional[str] = ..., fence: _Optional[int] = ...) -> None: ...

class GuardTurnResponse(_message.Message):
    __slots__ = ["request"]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    request: int
    def __init__(self, request: _Optional[int] = ...) -> None: ...

class ReleaseTurnRequest(_message.Message):
    __slots__ = ["fence", "gate", "place", "request"]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    fence: int
    gate: str
    place: int
    request: int
    def __init__(self, gate: _Optional[str] = ..., fence: _Optional[int] = ..., request: _Optional[int] = ..., place: _Optional[int] = ...) -> None: ...

class ReleaseTurnResponse(_message.Message):
    __slots__ = ["fence", "gate", "reason", "request"]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    fence: int
    gate: str
    reason: str
    request: int
    def __init__(self, gate: _Optional[str] = ..., fence: _Optional[int] = ..., reason: _Optional[str] = ..., request: _Optional[int] = ...) -> None: ...

class Turn(_message.Message):
    __slots__ = ["fence", "gate", "place", "request", "waited"]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    WAITED_FIELD_NUMBER: _ClassVar[int]
    fence: int
    gate: str
    place: int
    request: int
    waited: _duration_pb2.Duration
    def __init__(self, gate: _Optional[str] = ..., fence: _Optional[int] = ..., waited: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., request: _Optional[int] = ..., place: _Optional[int] = ...) -> None: ...

class TurnLost(_message.Message):
    __slots__ = ["fence", "gate", "place"]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    fence: int
    gate: str
    place: int
    def __init__(self, gate: _Optional[str] = ..., fence: _Optional[int] = ..., place: _Optional[int] = ...) -> None: ...

class TurnRefused(_message.Message):
    __slots__ = ["code", "gate", "place", "reason", "request"]
    CODE_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    code: _gateway_pb2.Code
    gate: str
    place: int
    reason: str
    request: int
    def __init__(self, gate: _Optional[str] = ..., reason: _Optional[str] = ..., request: _Optional[int] = ..., place: _Optional[int] = ..., code: _Optional[_Union[_gateway_pb2.Code, str]] = ...) -> None: ...
