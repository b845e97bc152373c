"""Error texts of failed calls: the words of gRPC, and what to change if that is known."""

import re

import grpc
import grpc.aio

from . import target
from .replica import Replica

_NOT_CONNECTED = re.compile(r"failed to connect to all addresses; last error: ([A-Z_]+: )?(ipv[46]:\S+: )?")
"""The prefix that gRPC puts before the reason."""
_CUT_OFF = re.compile("closed|reset|http1", re.IGNORECASE)
"""The words of gRPC for a connection to a server that speaks another protocol."""


def of_failure(replica: Replica, error: grpc.aio.AioRpcError) -> str:
    """One sentence: the replica, the failure, and what to change."""
    code, details = error.code(), error.details() or ""
    told = f"{replica}: {code.name}: {_NOT_CONNECTED.sub('', details)}"
    advice = _advice(replica, code, details)
    return f"{told}; {advice}" if advice else told


def _advice(replica: Replica, code: grpc.StatusCode, details: str) -> str:
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return (
            "what listens there is no nodewise-server, or one of another version: check the address, and the version "
            "of the server"
        )
    written = replica.target
    if code is not grpc.StatusCode.UNAVAILABLE or not _NOT_CONNECTED.match(details) or written is None:
        return ""
    if "WRONG_VERSION_NUMBER" in details:
        return (
            "what listens there does not speak TLS: check the port, and if it speaks plain text, "
            f"{target.without_tls(written)}"
        )
    if not replica.is_secure and _CUT_OFF.search(details):
        return (
            "what listens there does not speak gRPC in plain text: check the port, and if it speaks TLS, "
            f"{target.with_tls(written)}"
        )
    if isinstance(written, target.Fixed) and written.is_default_port:
        return (
            f"no port was written, so this was {written.port}: write that of the planning service, which is "
            f"{target.SERVICE_PORT} where nothing else was set"
        )
    if "connection refused" in details.lower():
        return "nothing listens there: check the address and the port, and that nodewise-server is running"
    return ""
