"""The generated messages and enum values of the protocol (`proto/nodewise/v1`). The comments there are binding."""

from .capabilities_pb2 import *
from .explain_pb2 import *
from .overhead_pb2 import *
from .plan_pb2 import *
from .reconcile_service_pb2 import *
from .report_pb2 import *
from .simulate_pb2 import *
from .snapshot_pb2 import *
from .verdict_service_pb2 import *
