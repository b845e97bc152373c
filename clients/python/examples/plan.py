"""Prints the plan for one DaemonSet, with reasons: `python examples/plan.py NAMESPACE NAME`. Changes nothing."""

import os
import sys

from kubernetes import client, config

from nodewise import convert, snapshot_of, sync, v1

namespace, name = sys.argv[1:]
config.load_kube_config()
core, apps = client.CoreV1Api(), client.AppsV1Api()
raw = {"_preload_content": False}  # the JSON as it was served, so that no field is lost
snapshot = snapshot_of(
    apps.read_namespaced_daemon_set(name, namespace, **raw).data,
    nodes=convert.items(core.list_node(**raw).data),
    pods=convert.items(core.list_namespaced_pod(namespace, **raw).data),
    revisions=convert.items(apps.list_namespaced_controller_revision(namespace, **raw).data),
)
with sync.PlanClient(os.environ.get("NODEWISE_SERVER", "http://127.0.0.1:7443")) as planner:
    plan = planner.plan_request(v1.PlanRequest(snapshot=snapshot))
print(v1.Verdict.Name(plan.verdict))
for action in (action for phase in plan.phases for batch in phase.batches for action in batch.actions):
    print(f"{action.WhichOneof('kind')}: {action.message}")
