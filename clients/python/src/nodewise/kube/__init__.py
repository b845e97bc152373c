"""A real apiserver: raw JSON over aiohttp, with the `kubernetes` package for kubeconfig and credentials.

Needs `pip install nodewise[kube]`.
"""

from .client import KubeClient
from .events import EventRecorder
from .watch import Watches
from .write import KubeActuator

__all__ = ["EventRecorder", "KubeActuator", "KubeClient", "Watches"]
