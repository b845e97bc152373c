"""Who serves: each replica's health is followed over `grpc.health.v1`.

A replica that ends says so beforehand, and is asked no more. One that failed comes back by a probe, so that no
reconcile is spent on finding out. A probe is a new watch: its first answer tells, and later ones are followed as they
come.
"""

import asyncio
import random
import time
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2

from . import words
from .replica import Replica
from .replicas import Replicas

SERVICE = "nodewise.v1.ReconcileService"
PROBE_TIMEOUT = 3.0
"""How long the answer to a probe may take, in seconds."""
PROBE_PAUSE = 0.25
"""The pause after the first failed probe; doubles with each further one, with jitter."""
MAX_PROBE_PAUSE = 5.0
"""The longest of these."""


async def look_after(replicas: Replicas, replica: Replica) -> None:
    """Never ends: cancel it when it is a replica no more."""
    pause = PROBE_PAUSE
    while True:
        began = time.monotonic()
        await _follow(replicas, replica)
        if time.monotonic() - began > MAX_PROBE_PAUSE:
            pause = PROBE_PAUSE
        rest = pause * random.uniform(0.5, 1.0)
        while rest > 0:
            await asyncio.sleep(rest)
            # A call may have failed meanwhile, too.
            rest = replica.rest
        pause = min(pause * 2, MAX_PROBE_PAUSE)


async def _follow(replicas: Replicas, replica: Replica) -> None:
    """Follows a replica's health until a call fails or the watch ends. What is told counts only while no call has
    failed since it began: an answer that was sent before a failure must not let the replica in again.
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
                    # Whatever was told may be older than the failure.
                    return
                if not told.done():
                    replicas.unwell(replica, f"{replica}: no answer within {PROBE_TIMEOUT} s")
                    return
                answer = told.result()
            finally:
                told.cancel()
            if answer is grpc.aio.EOF:
                # So ends one that drains.
                replicas.unwell(replica, f"{replica}: its health is told no more")
                return
            if answer.status == health_pb2.HealthCheckResponse.SERVING:
                replicas.serves(replica)
            else:
                replicas.drains(replica)
            timeout = None
    except grpc.aio.AioRpcError as error:
        # UNIMPLEMENTED is no exception, though gRPC's own clients take it for a server that tells nothing of its
        # health: a replica tells, so this is none.
        replicas.unwell(replica, words.of_failure(replica, error))
    finally:
        failed.cancel()
        watch.cancel()
