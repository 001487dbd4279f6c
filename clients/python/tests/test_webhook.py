"""Webhooks: requests of a node are verified."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import tempfile
import time
import unittest
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from wakebell import Client, webhook
from wakebell.errors import SignatureError

from .node import PATIENCE, TOKEN, Node, name


def new_secret() -> str:
    return "whsec_" + base64.b64encode(os.urandom(32)).decode()


def signed(secret: str, body: bytes, at: float) -> dict[str, str]:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.digest(key, b"msg_1.%d." % at + body, hashlib.sha256)
    return {"Webhook-Id": "msg_1", "Webhook-Timestamp": str(int(at)), "Webhook-Signature": "v1," + base64.b64encode(mac).decode()}


class Requests(unittest.TestCase):
    def test_the_request_of_a_node_is_verified(self) -> None:
        requests: list[tuple[Message, bytes]] = []

        class Hook(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                requests.append((self.headers, self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        secret, topic = new_secret(), name()
        with HTTPServer(("127.0.0.1", 0), Hook) as server, tempfile.NamedTemporaryFile("w") as file:
            file.write(secret + "\n")
            file.flush()
            waiting = Thread(target=server.handle_request)
            waiting.start()
            url = f"http://127.0.0.1:{server.server_port}/hooks"
            node = Node("--topic", topic, "--post", url, "--post-secret-file", file.name, "--post-allow", "loopback")
            try:
                with Client(node.address, token=TOKEN, timeout=PATIENCE) as client:
                    client.schedule(topic, {"cents": 995}, id="inv-42")
                    waiting.join()
            finally:
                node.stop()
        headers, body = requests[0]
        webhook.verify(headers, body, new_secret(), secret)
        self.assertEqual(headers["wakebell-id"], "inv-42")
        with self.assertRaises(SignatureError):
            webhook.verify(headers, body + b" ", secret)

    def test_a_wrong_or_old_signature_is_refused(self) -> None:
        secret, now = new_secret(), time.time()
        webhook.verify(signed(secret, b"body", now), b"body", secret)
        webhook.verify(signed(secret, b"body", now - 1000), b"body", secret, tolerance=2000)
        good = signed(secret, b"body", now)
        wrong: list[dict[str, str]] = [
            {},
            signed(secret, b"body", now - 400),
            signed(secret, b"body", now + 400),
            signed(new_secret(), b"body", now),
            signed(secret, b"Body", now),
            good | {"Webhook-Id": "msg_2"},
            good | {"Webhook-Timestamp": "soon"},
            good | {"Webhook-Timestamp": "١٢٣"},
            good | {"Webhook-Signature": ""},
            good | {"Webhook-Signature": "v1, v2,é"},
        ]
        for headers in wrong:
            with self.assertRaises(SignatureError):
                webhook.verify(headers, b"body", secret)

    def test_a_wrong_secret_is_an_error_that_does_not_show_it(self) -> None:
        for secrets in ((), ("",), ("whsec_c2hvcnQ=",), ("whsec_" + "!" * 40,), ("whsec_é" * 9,)):
            with self.assertRaises(ValueError) as wrong:
                webhook.verify({}, b"body", *secrets)
            self.assertNotIsInstance(wrong.exception, SignatureError)
            self.assertNotIn("c2hvcnQ", str(wrong.exception))
