"""The calls: an HTTP POST and a gRPC call, each over a connection of its own.

No redirect is followed, no proxy of the environment is used, and of a long answer no more is read than is needed to
know that it is too long (L-32).
"""

import asyncio
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import grpc
import grpc.aio

from .. import v1
from ..sanitize import one_line
from ..v1.verdict_service_pb2_grpc import VerdictServiceStub
from .address import Address
from .answers import Answer

if TYPE_CHECKING:
    from ..v1.verdict_service_pb2_grpc import VerdictServiceAsyncStub

MOST_BYTES = 1 << 20
"""Longest answer, in bytes."""
MOST_TOKEN_BYTES = 16 << 10
"""Longest token, in bytes. Servers take headers of this size."""


class Post(NamedTuple):
    """What is sent."""

    address: Address
    content_type: str
    body: bytes
    token: str | None = None


async def post(call: Post, authorities: bytes | None) -> Answer:
    """Makes an HTTP call. Its caller limits the time. Raises `ValueError`."""
    # Needs nodewise[kube], as every reconciler does.
    import aiohttp
    from yarl import URL

    headers = {"Accept": "application/json", "Accept-Encoding": "identity", "Content-Type": call.content_type}
    if call.token is not None:
        headers["Authorization"] = f"Bearer {call.token}"
    cadata = None if authorities is None else authorities.decode()
    tls = ssl.create_default_context(cadata=cadata) if call.address.tls else True
    try:
        async with (
            aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.post(
                URL(call.address.url, encoded=True), data=call.body, headers=headers, allow_redirects=False, ssl=tls
            ) as answer,
        ):
            body = bytearray()
            async for piece in answer.content.iter_any():
                body += piece
                if len(body) > MOST_BYTES:
                    raise ValueError(f"its answer is longer than {MOST_BYTES} bytes")
            return Answer(answer.status, bytes(body))
    except (aiohttp.ClientError, OSError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


async def get_verdict(
    address: Address, request: v1.GetVerdictRequest, token: str | None, authorities: bytes | None, timeout: float
) -> v1.MeasuredVerdict:
    """Asks a VerdictService. Raises `ValueError`."""
    target = f"dns:///{address}"
    options = (
        ("grpc.max_receive_message_length", MOST_BYTES),
        ("grpc.enable_http_proxy", 0),
        ("grpc.service_config_disable_resolution", 1),
    )
    if address.tls:
        channel = grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(authorities), options)
    else:
        channel = grpc.aio.insecure_channel(target, options)
    async with channel:
        stub = cast("VerdictServiceAsyncStub", VerdictServiceStub(channel))
        metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        try:
            response = await stub.GetVerdict(request, timeout=timeout, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise ValueError(f"{error.code().name}: {error.details()}") from error
    return v1.MeasuredVerdict(verdict=response.verdict, message=one_line(response.message))


async def read_token(folder: Path | None, name: str) -> str:
    """Reads the token in the file of this name, as it is now: the kubelet replaces the files when a Secret changes. An
    error tells nothing of the content. Raises `ValueError`.
    """
    if folder is None:
        raise ValueError("this executor has no folder with credentials")
    try:
        return await asyncio.to_thread(_read_token, folder / name)
    except OSError as error:
        raise ValueError(f"credential {name!r} cannot be used: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"credential {name!r} cannot be used: it has characters that no token has") from None


def _read_token(path: Path) -> str:
    # Opening a pipe would wait for a writer.
    if path.exists() and not path.is_file():
        raise OSError(0, "it is no file")
    with path.open("rb") as file:
        content = file.read(MOST_TOKEN_BYTES + 1)
    if len(content) > MOST_TOKEN_BYTES:
        raise OSError(0, f"it has more than {MOST_TOKEN_BYTES} bytes")
    token = content.decode("ascii").strip()
    if not token:
        raise OSError(0, "it is empty")
    if not token.isprintable():
        raise OSError(0, "it has characters that no token has")
    return token
