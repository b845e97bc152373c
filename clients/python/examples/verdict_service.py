"""A VerdictService: a rollout may go on while a metric is below a threshold.

    python examples/verdict_service.py --url http://127.0.0.1:8080/metrics --metric app_errors --below 5

It reads the metric in the text format of Prometheus, as most programs serve it, and compares the sum of its samples. A
check of a RolloutPolicy asks it with `grpc: {address: HOST:9000, tls: false}`, if whoever runs the executor allows that
host.
"""

import argparse
import asyncio
import urllib.request
from typing import Any

import grpc
import grpc.aio

from nodewise import v1
from nodewise.v1 import verdict_service_pb2_grpc


class Threshold(verdict_service_pb2_grpc.VerdictServiceServicer):
    """Compares a metric with a threshold."""

    def __init__(self, url: str, metric: str, below: float) -> None:
        self._url, self._metric, self._below = url, metric, below

    async def GetVerdict(  # noqa: N802
        self, request: v1.GetVerdictRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> v1.GetVerdictResponse:
        """Reads the metric and decides. An error is no verdict: the executor asks again."""
        try:
            found = await asyncio.to_thread(self._sum)
        except (OSError, ValueError) as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"{self._metric} cannot be read: {error}")
        is_below = found < self._below
        return v1.GetVerdictResponse(
            verdict=v1.ANALYSIS_VERDICT_PASS if is_below else v1.ANALYSIS_VERDICT_FAIL,
            message=f"{self._metric} is {found:g}, and {self._below:g} is the limit",
        )

    def _sum(self) -> float:
        with urllib.request.urlopen(self._url, timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        # NAME VALUE [TIME] or NAME{LABELS} VALUE [TIME]. The values of labels may have spaces.
        samples = [line.removeprefix(self._metric) for line in lines if line.startswith(self._metric)]
        values = [sample.rpartition("}")[2].split()[0] for sample in samples if sample[:1] in (" ", "{")]
        if not values:
            raise ValueError("there is no such metric")
        return sum(map(float, values))


async def main() -> None:
    """Serves until it is interrupted."""
    parser = argparse.ArgumentParser(description="Lets rollouts go on while a metric is below a threshold.")
    parser.add_argument("--listen", default="127.0.0.1:9000", help="HOST:PORT of the service")
    parser.add_argument("--url", required=True, help="where the metric is served")
    parser.add_argument("--metric", required=True, help="the name of the metric")
    parser.add_argument("--below", required=True, type=float, help="the threshold")
    given = parser.parse_args()
    server = grpc.aio.server()
    verdict_service_pb2_grpc.add_VerdictServiceServicer_to_server(
        Threshold(given.url, given.metric, given.below), server
    )
    port = server.add_insecure_port(given.listen)
    await server.start()
    print(f"listening on {given.listen.rpartition(':')[0]}:{port}", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
