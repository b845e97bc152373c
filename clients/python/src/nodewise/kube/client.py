"""Calls to an apiserver over HTTP. Bodies are sent and returned unchanged."""

import asyncio
import io
import os
import pathlib
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import NamedTuple

import aiohttp
import msgspec
from kubernetes import config as kubernetes_config
from kubernetes.client import Configuration

from .. import tracing, waiting
from ..actuator import ActuatorError, Refusal

_CREDENTIALS_FOR = 10.0
"""How long credentials are used before they are requested again, in seconds. The kubernetes package renews expired
ones.
"""
_CONNECT_TIMEOUT = 10.0


class Answer(NamedTuple):
    """The response to a successful call."""

    status: int
    body: bytes


class TooLongError(ActuatorError):
    """A response is longer than the caller accepts."""


class KubeClient:
    """A client of one apiserver. Use it as an async context manager."""

    def __init__(self, configuration: Configuration, *, user_agent: str = "nodewise-python") -> None:
        self._configuration = configuration
        self.user_agent = user_agent
        """The user agent, which is also the field manager of writes."""
        self._session: aiohttp.ClientSession | None = None
        self._credentials: dict[str, str] = {}
        self._renewed = float("-inf")
        self._renewing = asyncio.Lock()

    @classmethod
    def from_environment(cls, *, context: str | None = None, user_agent: str = "nodewise-python") -> "KubeClient":
        """Finds the cluster as kubectl does: KUBECONFIG, else ~/.kube/config, else the service account of the pod."""
        configuration = Configuration()
        files = os.environ.get("KUBECONFIG") or str(pathlib.Path.home() / ".kube" / "config")
        if any(pathlib.Path(file).exists() for file in files.split(os.pathsep)):
            kubernetes_config.load_kube_config(files, context, client_configuration=configuration)
        else:
            kubernetes_config.load_incluster_config(client_configuration=configuration)
        return cls(configuration, user_agent=user_agent)

    async def __aenter__(self) -> "KubeClient":
        if self._session is not None:
            raise RuntimeError("the Kubernetes client is in use already")
        self._session = aiohttp.ClientSession(
            # The callers bound the number of concurrent calls, and so of connections.
            connector=aiohttp.TCPConnector(ssl=_tls(self._configuration), limit=0),
            headers={"User-Agent": self.user_agent},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def require_open(self) -> aiohttp.ClientSession:
        """The HTTP session. Raises `RuntimeError` if the client is not open."""
        if self._session is None:
            raise RuntimeError("use the Kubernetes client as a context manager: async with KubeClient(...) as kube")
        return self._session

    async def call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout: float = 30.0,
        max_bytes: int | None = None,
    ) -> Answer:
        """Makes one call. Raises `ActuatorError`, with the apiserver's message if there is one, and `TooLongError` for
        a response of more than `max_bytes`.
        """
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            async with waiting.timeout(timeout), self._open(method, path, params, headers, body) as answer:
                return Answer(answer.status, await _body(answer, max_bytes))
        except asyncio.TimeoutError as error:
            raise ActuatorError(f"no answer within {timeout} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ActuatorError(f"{type(error).__name__}: {error}") from error

    def url(self, path: str) -> str:
        """The URL of a path of the API."""
        host: str = self._configuration.host
        return host.rstrip("/") + path

    @asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yields a response in pieces, as it arrives."""
        # With compression, Kubernetes from 1.37 on would compress each event of a watch by itself.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        try:
            async with self._open("GET", path, params, headers, None) as answer:
                yield answer.content.iter_any()
        except (aiohttp.ClientError, OSError) as error:
            raise ActuatorError(f"{type(error).__name__}: {error}") from error

    @asynccontextmanager
    async def _open(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        headers: dict[str, str],
        body: bytes | None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        session = self.require_open()
        headers |= await self._authorization()
        headers |= tracing.w3c_headers()
        async with session.request(
            method,
            self.url(path),
            params=params,
            headers=headers,
            data=body,
            proxy=self._configuration.proxy or None,
            server_hostname=getattr(self._configuration, "tls_server_name", None) or None,
        ) as answer:
            if answer.status >= 300:
                raise _refusal(answer.status, await answer.read(), answer.headers.get("Retry-After", ""))
            yield answer

    async def _authorization(self) -> dict[str, str]:
        async with self._renewing:
            if time.monotonic() - self._renewed > _CREDENTIALS_FOR:
                # This may run a plugin or read a file, so any exception is possible.
                try:
                    settings = await asyncio.to_thread(self._configuration.auth_settings)
                except Exception as error:
                    raise ActuatorError(f"getting credentials: {type(error).__name__}: {error}") from error
                headers = [setting for setting in settings.values() if setting["in"] == "header"]
                self._credentials = {setting["key"]: setting["value"] for setting in headers if setting["value"]}
                self._renewed = time.monotonic()
        return self._credentials


async def _body(answer: aiohttp.ClientResponse, max_bytes: int | None) -> bytes:
    if max_bytes is None:
        return await answer.read()
    # `getvalue` returns the written bytes without another copy.
    body = io.BytesIO()
    async for piece in answer.content.iter_any():
        if body.tell() + len(piece) > max_bytes:
            raise TooLongError(f"the answer has more than {max_bytes} bytes")
        body.write(piece)
    return body.getvalue()


def _tls(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct, rename="camel"):
    causes: list[_Cause] | None = None
    retry_after_seconds: int = 0


class _Status(msgspec.Struct):
    """The fields of a metav1.Status that are read."""

    message: str = ""
    reason: str = ""
    details: _Details | None = None


def _refusal(code: int, body: bytes, retry_after: str) -> ActuatorError:
    """The error for a response. `retry_after` is the value of its header Retry-After, which needs no Status."""
    try:
        status = msgspec.json.decode(body, type=_Status)
    except msgspec.MsgspecError:
        status = _Status(message=body[:4_000].decode(errors="replace"))
    details = status.details or _Details()
    causes = details.causes or []
    seconds = int(retry_after) if retry_after.isascii() and retry_after.isdecimal() and len(retry_after) < 10 else 0
    return ActuatorError(
        status.message or f"HTTP {code}",
        Refusal.of(code, status.reason, [cause.reason for cause in causes]),
        code,
        causes=[cause.message for cause in causes if cause.message],
        retry_after=max(details.retry_after_seconds, seconds),
    )
