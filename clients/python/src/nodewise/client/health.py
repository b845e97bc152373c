"""Follows the health of each replica over `grpc.health.v1`.

A replica that drains reports NOT_SERVING, and gets no new calls. A replica that failed returns after a successful
probe, so no reconcile is spent on testing it. A probe opens a new health watch: its first message is the result, and
later messages are followed as they arrive.
"""

import asyncio
import random
import time
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2

from . import messages
from .replica import Replica
from .replicas import Replicas

SERVICE = "nodewise.v1.ReconcileService"
PROBE_TIMEOUT = 3.0
"""Timeout of a probe, in seconds."""
PROBE_PAUSE = 0.25
"""The pause after the first failed probe, in seconds. It doubles with each further failure, with jitter."""
MAX_PROBE_PAUSE = 5.0
"""The longest pause between two probes, in seconds."""


async def follow_health(replicas: Replicas, replica: Replica) -> None:
    """Follows the health of a replica. Never returns: cancel it when the replica is removed."""
    pause = PROBE_PAUSE
    while True:
        began = time.monotonic()
        await _follow(replicas, replica)
        if time.monotonic() - began > MAX_PROBE_PAUSE:
            pause = PROBE_PAUSE
        rest = pause * random.uniform(0.5, 1.0)
        while rest > 0:
            await asyncio.sleep(rest)
            # A call may also have failed meanwhile.
            rest = replica.eviction_left
        pause = min(pause * 2, MAX_PROBE_PAUSE)


async def _follow(replicas: Replicas, replica: Replica) -> None:
    """Follows a replica's health until a call fails or the watch ends. A health message that was sent before a call
    failed does not count.
    """
    replica.call_failed.clear()
    watch: Any = replica.health.Watch(health_pb2.HealthCheckRequest(service=SERVICE))
    failed = asyncio.create_task(replica.call_failed.wait())
    timeout: float | None = PROBE_TIMEOUT
    try:
        while True:
            told = asyncio.ensure_future(watch.read())
            try:
                await asyncio.wait({told, failed}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                if replica.call_failed.is_set():
                    # The message may be older than the failure.
                    return
                if not told.done():
                    replicas.probe_failed(replica, f"{replica}: no answer within {PROBE_TIMEOUT} s")
                    return
                answer = told.result()
            finally:
                told.cancel()
            if answer is grpc.aio.EOF:
                # A draining replica ends the watch like this.
                replicas.probe_failed(replica, f"{replica}: its health is told no more")
                return
            if answer.status == health_pb2.HealthCheckResponse.SERVING:
                replicas.serves(replica)
            else:
                replicas.drains(replica)
            timeout = None
    except grpc.aio.AioRpcError as error:
        # UNIMPLEMENTED counts as a failure, too. gRPC's own clients take it for a server without health checks, but
        # every replica has them.
        replicas.probe_failed(replica, messages.of_failure(replica, error))
    finally:
        failed.cancel()
        watch.cancel()
