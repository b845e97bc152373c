"""Server targets: the address of one replica, or a name with one replica at each address record."""

import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Fixed:
    """`http://host:port`, or `https://host:port` with credentials: one replica."""

    host: str
    port: int
    scheme: str = "http"
    is_default_port: bool = field(default=False, compare=False)
    """The target has no port, so this is the default port of the scheme."""

    @property
    def address(self) -> str:
        """The address of the replica, which is also its identity."""
        return address(self.host, self.port)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.address}"


@dataclass(frozen=True, slots=True)
class Dns:
    """`dns:///host:port`: a replica at each A and AAAA record, as of a headless Service."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        """The name that the certificate of each replica must have."""
        return address(self.host, self.port)

    def __str__(self) -> str:
        return f"dns:///{self.authority}"


SERVICE_PORT = 7443
"""The default port of nodewise-server."""
_NAME = re.compile(r"(?:///)?(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?")
_LOOPBACK_V4 = ipaddress.IPv4Network("127.0.0.0/8")
_LOOPBACK_V6 = ipaddress.IPv6Address("::1")


class TargetError(ValueError):
    """A text that is not a valid target."""


def address(host: str, port: int) -> str:
    """`host:port`: the address of a replica, which is also its identity."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether a host is on loopback, as it is written. No name except `localhost` counts as loopback."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    return ip in _LOOPBACK_V4 or ip == _LOOPBACK_V6


def parse(text: str, *, secure: bool = False, plaintext: bool = False) -> Fixed | Dns:
    """Reads a target, for a client with credentials (`secure`), which then apply to all targets, or without. A client
    with credentials never uses plain text. Without credentials, a target off loopback needs `plaintext`.
    """
    read = _read(text, secure=secure)
    if not (secure or plaintext or is_loopback(read.host)):
        raise TargetError(
            f"{text!r} is not on loopback, and would be asked in plain text: {with_tls(read)}, or "
            "ClientConfig(plaintext=True) where something else protects it"
        )
    return read


def with_tls(target: Fixed | Dns) -> str:
    """Advice how to use TLS for a target."""
    give = "give credentials with ClientConfig(credentials=grpc.ssl_channel_credentials())"
    return give if isinstance(target, Dns) else f"write https://{target.address} and {give}"


def without_tls(target: Fixed | Dns) -> str:
    """Advice how to use plain text for a target."""
    leave_out = "leave ClientConfig.credentials out"
    return leave_out if isinstance(target, Dns) else f"write http://{target.address} and {leave_out}"


def _read(text: str, *, secure: bool) -> Fixed | Dns:
    scheme, _, rest = text.partition(":")
    match scheme:
        case "https" if not secure:
            raise TargetError(
                f"{text!r} asks for TLS, and no credentials are given: give some with ClientConfig(credentials="
                "grpc.ssl_channel_credentials()), or write http://HOST:PORT if the service is to be asked in plain text"
            )
        case "http" if secure:
            raise TargetError(
                f"{text!r} is plain text, and credentials are given: write https://HOST:PORT, or give no credentials"
            )
        case "http" | "https":
            return _fixed(text, scheme)
        case "dns":
            return _dns(text, rest)
    raise TargetError(
        f"{text!r} is not the address of a planning service: must be http://HOST:PORT, dns:///HOST:PORT or, with "
        f"credentials, https://HOST:PORT; a nodewise-server listens on port {SERVICE_PORT} where nothing else was set"
    )


def _fixed(text: str, scheme: str) -> Fixed:
    try:
        url = urlsplit(text)
        host, port = url.hostname, url.port
    except ValueError as error:
        raise TargetError(f"{text!r} is not the address of a planning service: {error}") from error
    bare = url.path in ("", "/") and not (url.query or url.fragment or url.username or url.password)
    if not host or not bare or "@" in url.netloc or url.netloc.endswith(":"):
        raise TargetError(f"{text!r} must be {scheme}://HOST:PORT and nothing more")
    default = 443 if scheme == "https" else 80
    return Fixed(host, default if port is None else port, scheme, is_default_port=port is None)


def _dns(text: str, rest: str) -> Dns:
    if rest.startswith("//") and not rest.startswith("///"):
        raise TargetError(
            f"{text!r}: names are looked up as the system does it, write dns:///HOST:PORT with three slashes"
        )
    match = _NAME.fullmatch(rest)
    if match is not None and match[3] is None:
        name = Dns(match[1] or match[2], SERVICE_PORT)
        raise TargetError(
            f"{text!r} has no port: write {name}, or another port where the planning service listens there"
        )
    port = int(match[3]) if match else 0
    if match is None or not 0 < port < 65536:
        raise TargetError(f"{text!r} must be dns:///HOST:PORT; both are needed")
    return Dns(match[1] or match[2], port)
