"""Verifies the requests of a node with ``--post``, which sends webhooks."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Iterable
from typing import Protocol

from .errors import SignatureError

TOLERANCE = 300.0
"""How far the clock of the node may be from this one, in seconds."""

_SHORTEST_KEY = 24  # bytes, as Standard Webhooks says


class Headers(Protocol):
    """Headers of a request, as ``http.server``, WSGI and ASGI frameworks have them."""

    def items(self) -> Iterable[tuple[str, str]]: ...


def verify(headers: Headers, body: bytes, *secrets: str, tolerance: float = TOLERANCE) -> None:
    """Return if one of the secrets has signed this request, at most ``tolerance`` seconds ago.

    ``body`` is the body as it was received, before any decoding. A secret is ``whsec_``
    and Base64; pass two while one replaces the other. Raises ``SignatureError``
    otherwise, and ``ValueError`` for a secret that is none. Remember ``webhook-id`` of
    the requests that were handled: a request may be repeated.
    """
    keys = [_key(secret) for secret in secrets]
    if not keys:
        raise ValueError("no secret")
    received = {name.lower(): value for name, value in headers.items()}
    identifier, timestamp = received.get("webhook-id", ""), received.get("webhook-timestamp", "")
    if not identifier or not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
        raise SignatureError("the headers webhook-id and webhook-timestamp are missing or wrong")
    if abs(time.time() - int(timestamp)) > tolerance:
        raise SignatureError("the timestamp is too far from this clock")
    signed = f"{identifier}.{timestamp}.".encode() + body
    signatures = received.get("webhook-signature", "").split()
    for key in keys:
        right = b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
        if any(hmac.compare_digest(right, signature.encode()) for signature in signatures):
            return
    raise SignatureError("none of the secrets made the signature")


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.strip().removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a secret is not whsec_ and Base64") from None  # the cause shows it
    if len(key) < _SHORTEST_KEY:
        raise ValueError(f"a secret has {len(key)} bytes, want at least {_SHORTEST_KEY}")
    return key
