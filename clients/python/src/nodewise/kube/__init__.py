"""A real apiserver: raw JSON over aiohttp, with the `kubernetes` package for kubeconfig and credentials.

Needs `pip install nodewise[kube]`.
"""

try:
    from .client import KubeClient
except ModuleNotFoundError as error:
    message = f"the Reconciler and the KubeClient need the package {error.name}: pip install 'nodewise[kube]'"
    raise ModuleNotFoundError(message, name=error.name) from error
from .events import EventRecorder
from .watch import Watches
from .write import KubeActuator

__all__ = ["EventRecorder", "KubeActuator", "KubeClient", "Watches"]
