// A dump of a cluster whose DaemonSets have RolloutPolicies, each in another state.

import { writeFile } from "node:fs/promises";

/** Text that would be a picture and run a script, if the page took it for HTML. */
export const MARKUP = '<img src="x" onerror="document.title=1">';

/** The nodes; the first two are canaries, and the last one has not been ready for long. */
const NODES = 9;
const CANARIES = 2;

const time = (secondsAgo) => new Date(Date.now() - secondsAgo * 1000).toISOString().replace(/\.\d+/, "");
const condition = (ready, secondsAgo) => ({ type: "Ready", status: ready ? "True" : "False", lastTransitionTime: time(secondsAgo) });

const node = (index) => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: {
    name: `node-${index}`,
    uid: `n${index}`,
    labels: { "topology.kubernetes.io/zone": `zone-${"abc"[index % 3]}`, role: index < CANARIES ? "canary" : "plain" },
  },
  spec: {},
  status: { conditions: [condition(index !== NODES - 1, 9_000)] },
});

const template = (name, image) => ({ metadata: { labels: { app: name } }, spec: { containers: [{ name, image, resources: {} }] } });

/** A DaemonSet whose canaries have the new image, and its policy. */
function workload(name, spec, target) {
  const images = [`registry.example/${name}:1`, `registry.example/${name}:2`];
  const owner = { apiVersion: "apps/v1", kind: "DaemonSet", name, uid: `set-${name}`, controller: true };
  const of = (kind, apiVersion, own, labels, created) => ({
    apiVersion,
    kind,
    metadata: { namespace: "shop", name: own, uid: `${kind}-${own}`, creationTimestamp: time(created), labels: { app: name, ...labels }, ownerReferences: [owner] },
  });
  const hash = (number) => ({ "controller-revision-hash": `${name}${number}` });
  const revisions = [1, 2].map((number) => ({
    ...of("ControllerRevision", "apps/v1", `${name}-${number}`, hash(number), number === 1 ? 90_000 : 600),
    revision: number,
    data: { spec: { template: { $patch: "replace", ...template(name, images[number - 1]) } } },
  }));
  const pods = Array.from({ length: NODES }, (_, index) => {
    const number = index < CANARIES ? 2 : 1;
    const since = number === 2 ? 240 : 80_000;
    return {
      ...of("Pod", "v1", `${name}-${index}`, hash(number), since + 20),
      spec: { nodeName: `node-${index}`, containers: [{ name, image: images[number - 1] }] },
      status: { phase: "Running", conditions: [condition(true, since)] },
    };
  });
  const set = {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { namespace: "shop", name, uid: owner.uid, generation: 2, creationTimestamp: time(90_000) },
    spec: {
      selector: { matchLabels: { app: name } },
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 2 } },
      template: template(name, images[1]),
    },
    status: { observedGeneration: 2 },
  };
  const canary = { name: "canary", nodes: CANARIES, updated: CANARIES, available: CANARIES, state: "Progressing", startTime: time(300) };
  const policy = {
    apiVersion: "nodewise.dev/v1alpha1",
    kind: "RolloutPolicy",
    metadata: { namespace: "shop", name: `${name}-policy`, uid: `policy-${name}`, generation: 1, resourceVersion: "7", creationTimestamp: time(90_000) },
    spec: { targets: { names: [name] }, ...spec },
    status: {
      observedGeneration: 1,
      conditions: [],
      targets: [
        {
          name,
          uid: owner.uid,
          updateRevision: { hash: `${name}2`, number: 2 },
          stableRevision: { hash: `${name}1`, number: 1 },
          digest: "d16e57",
          state: "Progressing",
          message: "",
          startTime: time(300),
          lastUpdateTime: time(2),
          stages: [{ ...canary, ...target.canary }],
          ...target.fields,
        },
      ],
    },
  };
  return [set, ...revisions, ...pods, policy];
}

const check = { name: "errors", interval: "1m", count: 5, failureLimit: 1, webhook: { url: "https://checks.example/errors" } };
const canary = (soak, more = {}) => ({ name: "canary", nodeSelector: { matchLabels: { role: "canary" } }, soak, ...more });

/** A window of an hour on each day that opens in two hours. */
function laterWindow() {
  const at = (hours) => new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16);
  return { startTime: at(2), endTime: at(3), timeZone: "Etc/UTC" };
}

/** Writes the dump. */
export async function policyDump(file) {
  const passed = { name: "errors", measurements: 5, successful: 5, time: time(20), value: "0.004" };
  const failed = { name: "errors", measurements: 2, successful: 1, failed: 1, time: time(20), value: "0.02", message: MARKUP };
  const rejectedRevision = { hash: "edge2", number: 2, reason: "FailureThreshold", message: "2 nodes failed", time: time(60), digest: "4e5" };
  const items = [
    ...Array.from({ length: NODES }, (_, index) => node(index)),
    ...workload(
      "agent",
      { stages: [canary("1m", { analysis: [check] }), { name: "zones", groupBy: "topology.kubernetes.io/zone", approval: "Required" }] },
      { canary: { analysis: [passed] }, fields: { blocking: [{ node: "node-3", reason: "the PodDisruptionBudget agent does not allow an eviction" }] } },
    ),
    ...workload("logs", { stages: [canary("1h", { analysis: [check] })] }, { canary: { analysis: [failed] }, fields: { blocking: [{ node: "node-4", reason: MARKUP }] } }),
    ...workload("edge", { onFailure: "Pause", stages: [canary("1h")] }, { fields: { state: "Rejected", rejectedRevision } }),
    ...workload("quiet", { paused: true, stages: [canary("1h")] }, {}),
    ...workload("night", { windows: [laterWindow()], stages: [canary("1m")] }, {}),
    ...workload("many", { nodes: { maxExempt: 0 }, stages: [canary("1m")] }, {}),
  ];
  await writeFile(file, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
}
