"""A real SMTP server on loopback, whose answers a test chooses."""

import email
import email.policy
import socket
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from pytest_django import Settings


class MailServer:
    """Keeps what it accepted. `mood` is accept, refuse (a 451 to the data) or hang_up (no answer to the data)."""

    def __init__(self) -> None:
        self.accepted: list[EmailMessage] = []
        self.mood = "accept"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.mood == "refuse":
            return "451 not now"
        self.accepted.append(email.message_from_bytes(envelope.content, policy=email.policy.default))
        if self.mood == "hang_up":
            server.transport.close()
        return "250 taken"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def mail_server(settings: Settings) -> Iterator[MailServer]:
    """The server that the settings name in this test."""
    server = MailServer()
    controller = Controller(server, hostname="127.0.0.1", port=free_port())
    controller.start()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", controller.port
    settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    yield server
    controller.stop()
