// The workloads of the tests.

import { writeFile } from "node:fs/promises";

const template = (app, image) => ({
  metadata: { labels: { app } },
  spec: { containers: [{ name: app, image, resources: { requests: { cpu: "10m" } } }] },
});

const object = (kind, namespace, name, spec) => ({ apiVersion: "apps/v1", kind, metadata: { namespace, name }, spec });

const daemonSet = (namespace, name, image, maxUnavailable = 3) =>
  object("DaemonSet", namespace, name, {
    selector: { matchLabels: { app: name } },
    updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable } },
    template: template(name, image),
  });

/** Two DaemonSets and two Deployments. */
export const workloads = {
  apiVersion: "v1",
  kind: "List",
  items: [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } },
    daemonSet("shop", "agent", "registry.example/agent:1"),
    daemonSet("kube-system", "log-collector", "registry.example/logs:7", 1),
    object("Deployment", "shop", "web", { replicas: 8, selector: { matchLabels: { app: "web" } }, template: template("web", "registry.example/web:1") }),
    object("Deployment", "shop", "checkout", { replicas: 4, selector: { matchLabels: { app: "checkout" } }, template: template("checkout", "registry.example/checkout:3") }),
  ],
};

const time = (secondsAgo) => new Date(Date.now() - secondsAgo * 1000).toISOString().replace(/\.\d+/, "");

/** Writes a dump with a DaemonSet that is stuck on many nodes. */
export async function dump(file, count) {
  const node = (index) => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: `node-${index}`,
      uid: `n${index}`,
      labels: { "topology.kubernetes.io/zone": `zone-${"abc"[index % 3]}`, "karpenter.sh/nodepool": index % 10 ? "general" : "gpu" },
    },
    spec: {},
    status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: time(90_000) }] },
  });
  const revision = (number, image) => ({
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata: {
      namespace: "shop",
      name: `agent-${number}`,
      uid: `r${number}`,
      creationTimestamp: time(number === 1 ? 90_000 : 600),
      labels: { app: "agent", "controller-revision-hash": `hash${number}` },
      ownerReferences: [owner],
    },
    revision: number,
    data: { spec: { template: { $patch: "replace", ...template("agent", image) } } },
  });
  const owner = { apiVersion: "apps/v1", kind: "DaemonSet", name: "agent", uid: "d1", controller: true };
  const images = ["registry.example/agent:1", "registry.example/missing:2"];
  const pod = (index) => {
    // The first third is updated, then come the stuck ones, then those that wait.
    const state = index < count / 3 ? "done" : index < count / 3 + 60 ? "stuck" : "old";
    const number = state === "old" ? 1 : 2;
    const since = time(state === "stuck" ? 400 : state === "done" ? 500 : 80_000);
    const ready = state !== "stuck";
    const waiting = { reason: "ImagePullBackOff", message: 'Back-off pulling image "registry.example/missing:2"' };
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        namespace: "shop",
        name: `agent-${index}`,
        uid: `p${index}`,
        creationTimestamp: since,
        labels: { app: "agent", "controller-revision-hash": `hash${number}` },
        ownerReferences: [owner],
      },
      spec: { nodeName: `node-${index}`, containers: [{ name: "agent", image: images[number - 1] }] },
      status: {
        phase: ready ? "Running" : "Pending",
        conditions: [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime: since }],
        containerStatuses: [{ name: "agent", ready, restartCount: 0, image: "", imageID: "", state: ready ? { running: {} } : { waiting } }],
      },
    };
  };
  const set = daemonSet("shop", "agent", images[1], 60);
  Object.assign(set.metadata, { uid: "d1", generation: 2, creationTimestamp: time(90_000) });
  set.status = { observedGeneration: 2 };
  const indices = Array.from({ length: count }, (_, index) => index);
  const items = [set, revision(1, images[0]), revision(2, images[1]), ...indices.map(node), ...indices.map(pod)];
  await writeFile(file, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
}
