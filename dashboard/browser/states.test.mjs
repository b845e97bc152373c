// The words, shapes and commands of policies, without a browser: the sources are bundled and called.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const web = join(dirname(fileURLToPath(import.meta.url)), "../web");

/** What a file of web/ exports. */
async function sources(name) {
  const built = await build({ entryPoints: [join(web, name)], bundle: true, format: "esm", jsx: "automatic", jsxImportSource: "preact", write: false });
  return import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);
}

const { approvalCommands, policyLook, stageLook, stateLook } = await sources("policies.ts");
const { groupOf, lookOf } = await sources("states.tsx");

const DIGEST = "0123456789abcdef0123456789abcdef";
const waiting = (fields = {}, status = {}) => ({
  kind: "DaemonSet",
  namespace: "shop",
  name: "agent",
  state: "ROLLOUT_STATE_PROGRESSING",
  policy: { name: "agents", state: "AwaitingApproval", pendingApproval: { stage: "rest", digest: DIGEST }, ...fields },
  ...status,
});
const lines = (status) => approvalCommands(status).map(({ line }) => line);

test("the commands of an approval name the workload, the policy and the digest", () => {
  assert.deepEqual(lines(waiting()), [
    "nodewise rollout approve daemonset/agent -n shop",
    `kubectl annotate rolloutpolicy agents -n shop --overwrite nodewise.dev/approve=${DIGEST}`,
  ]);
  assert.ok(approvalCommands(waiting()).every(({ changes }) => changes));
});

test("a digest or a name that a shell would take for more is in no command", () => {
  for (const digest of ["", "$(reboot)", "a b", "a;b", "a\nb", "`b`", "a'b", "A", "-a"]) {
    assert.deepEqual(lines(waiting({ pendingApproval: { digest } })), ["nodewise rollout approve daemonset/agent -n shop"], digest);
  }
  assert.deepEqual(lines(waiting({ name: "a; b" })), []);
  assert.deepEqual(lines(waiting({}, { name: "$(b)" })), []);
});

test("a rollout that waits for a person or a window is held, and one that pods hold up is not", () => {
  const of = (state, status = {}) => ({ key: {}, status: waiting({ state }, status), commands: [], divergence: null });
  for (const [state, group, word] of [
    ["AwaitingApproval", "held", "awaiting approval"],
    ["OutsideWindow", "held", "outside window"],
    ["Partitioned", "held", "partitioned"],
    ["Soaking", "rolling", "soaking"],
    ["Analyzing", "rolling", "analyzing"],
    ["RollingBack", "rolling", "rolling back"],
    ["Progressing", "rolling", "rolling"],
  ]) {
    assert.deepEqual([groupOf(of(state)), lookOf(of(state)).word], [group, word], state);
  }
  const causes = [{ reason: "CrashLoopBackOff" }];
  assert.deepEqual([groupOf(of("AwaitingApproval", { causes })), lookOf(of("AwaitingApproval", { causes })).word], ["failing", "failing"]);
  const stuck = { state: "ROLLOUT_STATE_STUCK" };
  assert.equal(lookOf(of("Soaking", stuck)).word, "stuck", "that pods cannot become available says more");
  assert.equal(lookOf(of("Rejected", stuck)).word, "rejected");
  assert.equal(lookOf(of("TooManyNodesNotReady", stuck)).word, "held");
  assert.equal(policyLook({ ...waiting(), policy: undefined }), undefined);
});

test("a state of a later version is shown in words, and no name of an object is one", () => {
  assert.equal(stateLook({ name: "a", state: "ProgressDeadlineExceeded" }).word, "progress deadline exceeded");
  assert.equal(stateLook({ name: "a", state: "SomethingNew" }).word, "something new");
  assert.equal(stateLook({ name: "a" }).word, "not begun");
  assert.equal(stageLook({ name: "a", state: "toString" }).word, "to string");
  assert.equal(policyLook(waiting({ state: "constructor" })), undefined);
});

test("each state of a stage has a shape of its own", () => {
  const states = ["Pending", "AwaitingApproval", "OutsideWindow", "Analyzing", "Progressing", "Soaking", "Complete"];
  const looks = states.map((state) => stageLook({ name: "a", state }));
  assert.equal(new Set(looks.map(({ shape }) => shape)).size, states.length);
  assert.equal(new Set(looks.map(({ word }) => word)).size, states.length);
});
