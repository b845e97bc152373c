"""A complete controller that owns every DaemonSet of a cluster, or those that a label selector matches. With
`--controllers` it owns ReplicaSets and Deployments, too.

    KUBECONFIG=... NODEWISE_SERVER=http://127.0.0.1:7443 python examples/controller.py [--selector app=agent]
        [--controllers daemonset-controller,replicaset-controller,deployment-controller]
        [--analysis-host prometheus:9090]

`NODEWISE_SERVER` has one or several targets, separated by commas: `http://HOST:PORT` or `dns:///HOST:PORT`. For TLS
write `https://HOST:PORT`, and set `NODEWISE_TLS_CA` to a file with the accepted certificate authorities, or
`NODEWISE_TLS_CERT` and `NODEWISE_TLS_KEY` to files with the controller's own certificate and key. Without any of these,
replicas must be on loopback, unless `NODEWISE_PLAINTEXT` is `true`.

SIGTERM stops the controller in order. If `OTEL_EXPORTER_OTLP_ENDPOINT` is set to an OpenTelemetry collector, the
controller exports traces over OTLP/gRPC, which needs `opentelemetry-exporter-otlp-proto-grpc`.
"""

import argparse
import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import grpc

from nodewise import DAEMON_SET, DEPLOYMENT, REPLICA_SET, ClientConfig, Config, Kind, KubeClient, PlanClient, Reconciler
from nodewise.analysis import Analyzer

LAST_SPANS = 3.0
"""How long the export of the last spans may delay the exit, in seconds."""


KINDS = (DAEMON_SET, DEPLOYMENT, REPLICA_SET)


async def main(owned: Config, kinds: list[Kind], analyzer: Analyzer) -> None:
    """Runs until SIGTERM or SIGINT."""
    servers = os.environ.get("NODEWISE_SERVER", "http://127.0.0.1:7443").split(",")
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    config = ClientConfig(credentials=credentials(), plaintext=os.environ.get("NODEWISE_PLAINTEXT") == "true")
    async with KubeClient.from_environment() as kube, PlanClient(*servers, config=config) as service:
        await Reconciler(kube, service, owned, kinds=kinds, measurer=analyzer).run(stop)


def credentials() -> grpc.ChannelCredentials | None:
    """Reads the TLS credentials that the environment names, once."""
    names = [f"NODEWISE_TLS_{name}" for name in ("CA", "KEY", "CERT")]
    files = [Path(path).read_bytes() if (path := os.environ.get(name)) else None for name in names]
    ca, key, cert = files
    if (key is None) != (cert is None):
        raise SystemExit("NODEWISE_TLS_CERT and NODEWISE_TLS_KEY belong together")
    return grpc.ssl_channel_credentials(ca, key, cert) if any(files) else None


def export_traces() -> Callable[[], None]:
    """Exports traces if the standard OTEL_* variables name a collector. Returns a function that sends the last spans.
    The SDK reads sampling, the resource, timeouts and other settings from the same variables.
    """

    def setting(name: str) -> str:
        """The setting for traces, or else the one for all signals."""
        both = (f"OTEL_EXPORTER_OTLP_TRACES_{name}", f"OTEL_EXPORTER_OTLP_{name}")
        return next((value for value in map(os.environ.get, both) if value), "")

    exporter = os.environ.get("OTEL_TRACES_EXPORTER") or "otlp"
    if exporter != "otlp" or not setting("ENDPOINT"):
        return lambda: None
    if (protocol := setting("PROTOCOL") or "grpc") != "grpc":
        logging.warning("traces are not exported: OTLP goes out over grpc only, and %s is asked for", protocol)
        return lambda: None
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        logging.warning("traces are not exported: %s", error)
        return lambda: None
    # The environment overrides the default name.
    resource = Resource.create({"service.name": "nodewise-python"}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)

    def send_last() -> None:
        # This takes as long as the collector does.
        sending = threading.Thread(target=provider.shutdown, daemon=True)
        sending.start()
        sending.join(LAST_SPANS)

    return send_last


class Formatter(logging.Formatter):
    """Adds the trace ids to a line."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Formats one line."""
        line = super().formatMessage(record)
        ids = (f"{name}={record.__dict__[name]}" for name in ("trace_id", "span_id") if name in record.__dict__)
        return " ".join([line, *ids])


def controllers(text: str) -> list[Kind]:
    """The kinds of workload that a list of controllers enables, with the syntax of kube-controller-manager: names, `*`
    for all, and `-NAME` for not this one. The first entry with its name decides. Raises `ValueError`.
    """
    entries = [entry.strip() for entry in text.split(",")]
    known = {name: kind for kind in KINDS for name in (kind.controller, kind.controller.removesuffix("-controller"))}
    named: dict[Kind, bool] = {}
    for entry in entries:
        if entry == "*":
            continue
        kind = known.get(entry.removeprefix("-"))
        if kind is None:
            there = ", ".join(kind.controller for kind in KINDS)
            raise ValueError(f"there is no controller {entry!r}; there are {there}")
        named.setdefault(kind, not entry.startswith("-"))
    enabled = [kind for kind in KINDS if named.get(kind, "*" in entries)]
    if not enabled:
        raise ValueError(f"--controllers {text} enables no controller")
    return enabled


def arguments() -> tuple[Config, list[Kind], Analyzer]:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description="Owns the workloads of a cluster.")
    parser.add_argument("--selector", help="own only those whose labels match, in the syntax of kubectl --selector")
    names = ", ".join(kind.controller for kind in KINDS)
    parser.add_argument(
        "--controllers",
        default=DAEMON_SET.controller,
        help=f"the controllers to run, a comma list of {names}, or * for all; -NAME leaves one out",
    )
    parser.add_argument(
        "--analysis-host",
        action="append",
        default=[],
        metavar="HOST[:PORT][=CREDENTIAL]",
        help="a host that checks of RolloutPolicies may call, and which credential it may get",
    )
    parser.add_argument("--analysis-credentials", help="the folder with files of bearer tokens, by their names")
    given = parser.parse_args()
    try:
        analyzer = Analyzer(given.analysis_host, credentials=given.analysis_credentials)
        return Config(selector=given.selector), controllers(given.controllers), analyzer
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    owned, kinds, analyzer = arguments()
    log = logging.StreamHandler()
    log.setFormatter(Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=os.environ.get("LOG_LEVEL", "INFO"), handlers=[log])
    send_last_spans = export_traces()
    try:
        asyncio.run(main(owned, kinds, analyzer))
    finally:
        send_last_spans()
