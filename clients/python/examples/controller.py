"""A complete controller that owns every DaemonSet of a cluster.

    KUBECONFIG=... NODEWISE_SERVER=http://127.0.0.1:7443 python examples/controller.py

`NODEWISE_SERVER` names one or several replicas, by `http://HOST:PORT` or `dns:///HOST:PORT`, with commas in between.
SIGTERM ends it in an orderly way.
"""

import asyncio
import logging
import os
import signal

from nodewise import KubeClient, PlanClient, Reconciler


async def main() -> None:
    """Works until SIGTERM or SIGINT."""
    servers = os.environ.get("NODEWISE_SERVER", "http://127.0.0.1:7443").split(",")
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with KubeClient.from_environment() as kube, PlanClient(*servers) as service:
        await Reconciler(kube, service).run(stop)


if __name__ == "__main__":
    logging.basicConfig(level=os.environ.get("LOG_LEVEL", "INFO"), format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(main())
