"""Nodewise inside an operator that is written with kopf: `kopf run examples/kopf_operator.py --all-namespaces`.

The reconciler has its own watches, so pods and nodes queue a workload, too. The handlers ask it to reconcile at once.
Filters of kopf, such as `labels=` and `--namespace`, only limit the DaemonSets for which the handler is called. The
reconciler owns every DaemonSet, unless `Config(selector=..., namespaces=...)` limits that.
"""

import asyncio
import os
from contextlib import AsyncExitStack
from typing import Any

import kopf

from nodewise import Failed, KubeClient, PlanClient, Reconciler


@kopf.on.startup()
async def start(memo: kopf.Memo, **_: Any) -> None:
    """Starts the reconciler."""
    servers = os.environ.get("NODEWISE_SERVER", "http://127.0.0.1:7443").split(",")
    memo.stack = AsyncExitStack()
    kube = await memo.stack.enter_async_context(KubeClient.from_environment())
    service = await memo.stack.enter_async_context(PlanClient(*servers))
    memo.reconciler = await memo.stack.enter_async_context(Reconciler(kube, service))


@kopf.on.cleanup()
async def stop(memo: kopf.Memo, **_: Any) -> None:
    """Stops the reconciler after its current work."""
    await memo.stack.aclose()


@kopf.on.event("apps", "v1", "daemonsets")
async def changed(memo: kopf.Memo, namespace: str | None, name: str, logger: kopf.Logger, **_: Any) -> None:
    """Add the operator's own work here. Then Nodewise reconciles the DaemonSet."""
    ending = await asyncio.wait_for(memo.reconciler.reconcile(namespace or "default", name), timeout=60)
    if isinstance(ending, Failed):
        logger.warning("it is tried again, since: %s", ending.reason)
