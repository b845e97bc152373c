// The views of DaemonSets with RolloutPolicies in a real browser, from a dump: nothing needs to run beside the page.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { MARKUP, policyDump } from "./policies.mjs";
import { browser, dashboard, findings } from "./programs.mjs";

const stops = [];
let page, site;

const later = (stop) => stops.push(stop);

before(async () => {
  const folder = await mkdtemp(join(tmpdir(), "nodewise-policies-"));
  later(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "dump.json");
  await policyDump(file);
  const opened = await browser();
  later(opened.stop);
  site = await dashboard("-f", file);
  later(site.stop);
  page = await opened.context.newPage();
  page.on("pageerror", (error) => assert.fail(`the page has an error: ${error}`));
  page.on("console", (message) => {
    if (message.type() === "error") assert.fail(`the console says ${message.text()}`);
  });
  await page.goto(site.url);
  await page.getByRole("link", { name: "shop/agent" }).waitFor();
});

after(async () => {
  for (const stop of stops.toReversed()) await stop();
});

const rollout = (name) => `/rollout/DaemonSet/shop/${name}`;
const open = (path) => page.goto(`${site.origin}${path}`);
const policy = () => page.getByRole("region", { name: /^RolloutPolicy/ });
const table = (name) => page.getByRole("group", { name, exact: true });
const row = (caption, text) => table(caption).locator("tbody tr", { hasText: text });

/** The cells of the only row with a text, by the titles of their columns. */
async function cells(caption, text) {
  await row(caption, text).waitFor();
  const [titles, values] = await Promise.all([table(caption).locator("thead th").allInnerTexts(), row(caption, text).locator("td").allInnerTexts()]);
  assert.equal(values.length, titles.length);
  return Object.fromEntries(titles.map((title, index) => [title.trim(), values[index].trim()]));
}

/** A picture for docs/dashboard.md, if pictures are wanted. */
async function picture(name, colorScheme = "light") {
  if (!process.env.SCREENSHOTS) return;
  await page.emulateMedia({ colorScheme });
  await page.mouse.move(0, 0);
  await page.evaluate(() => (document.activeElement?.blur(), scrollTo(0, 0)));
  // Without the bar at the top, which has the path of the dump.
  const clip = { x: 0, y: 50, width: 1440, height: 880 };
  await page.screenshot({ path: join(process.env.SCREENSHOTS, `dashboard-${name}.png`), fullPage: true, clip });
  await page.emulateMedia({ colorScheme: "light" });
}

test("the overview marks what each policy does, each with its own shape", async () => {
  await open("/");
  const states = {
    agent: "awaiting approval",
    logs: "soaking",
    edge: "rejected",
    quiet: "paused",
    night: "outside window",
    many: "held",
  };
  const shapes = new Set();
  for (const [name, word] of Object.entries(states)) {
    const state = page.locator("tbody tr", { hasText: `shop/${name}` }).locator(".state");
    await state.getByText(word).waitFor();
    shapes.add(await state.locator("path").getAttribute("d"));
  }
  assert.equal(shapes.size, Object.keys(states).length, "no two states have one shape");
  await page.getByRole("button", { name: "3 held" }).click();
  assert.equal(await page.locator("tbody tr").count(), 3, "an approval, a pause, a window");
  await page.getByRole("button", { name: "2 stuck" }).waitFor();
  await page.getByRole("button", { name: "1 rolling" }).waitFor();
});

test("a rollout shows its stages, its checks, and the approval that it waits for", async () => {
  await open(rollout("agent"));
  await page.locator("h1 .word", { hasText: "awaiting approval" }).waitFor();
  await policy().getByText("stage zones with 7 nodes waits for an approval").waitFor();
  assert.equal(await page.getByText("Time left").count(), 0, "nobody knows when it is approved");
  const canary = await cells("Stages", "canary");
  assert.deepEqual(
    [canary.State, canary.Updated, canary.Available, canary.Exempt, canary.Failed, canary.Approval],
    ["complete", "2/2", "2/2", "0", "0", ""],
  );
  const wave = await cells("Stages", "zones/zone-a");
  assert.deepEqual([wave.State, wave.Updated, wave.Available], ["awaiting approval", "0/2", "0/2"]);
  assert.match(wave.Approval, /^waiting for \d+ s$/);
  const last = await cells("Stages", "zones/zone-c");
  assert.deepEqual([last.State, last.Exempt, last.Approval], ["pending", "1", ""]);
  const check = await cells("Checks", "errors");
  assert.deepEqual([check.Stage, check["Last value"], check.Measured, check.Passed, check.Failed], ["canary", "0.004", "5 of 5", "5", "0 (at most 1)"]);
  await picture("policy");
  await picture("policy-dark", "dark");
});

test("the commands of the approval are those of the command line", async () => {
  await open(rollout("agent"));
  const copied = async (name) => {
    await policy().getByRole("button", { name }).click();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  assert.equal(await copied(/^Copy: nodewise rollout approve/), "nodewise rollout approve daemonset/agent -n shop");
  const digest = await policy().locator("p code").innerText();
  assert.match(digest, /^[0-9a-f]{32}$/);
  const annotate = `kubectl annotate rolloutpolicy agent-policy -n shop --overwrite nodewise.dev/approve=${digest}`;
  assert.equal(await copied(/^Copy: kubectl annotate/), annotate);
  const purposes = { rollback: "Reject the new revision, and let its nodes go back to the stable one", pause: "Pause the rollout" };
  for (const [verb, purpose] of Object.entries(purposes)) {
    const command = page.getByRole("group", { name: purpose, exact: true });
    assert.equal(await command.innerText(), `nodewise rollout ${verb} daemonset/agent -n shop`);
  }
});

test("nodes have their stage, and those that matter their reason", async () => {
  await open(rollout("agent"));
  assert.equal((await cells("Held up by", "node-3")).Why, "the PodDisruptionBudget agent does not allow an eviction");
  assert.equal((await cells("Exempt", "node-8")).Why, "Ready is False for 2h");
  assert.match((await cells("Nodes", "node-8")).Stage, /^zones\/zone-c\s*exempt$/);
  await page.getByRole("button", { name: "stage", exact: true }).click();
  const groups = page.locator(".grid-head b");
  await groups.getByText("zones/zone-c").waitFor();
  assert.deepEqual(await groups.allInnerTexts(), ["canary", "zones/zone-a", "zones/zone-b", "zones/zone-c"], "in the order of the stages");
  assert.equal(new URL(page.url()).search, "?group=stage");
  await open("/node/node-3");
  await page.locator("tbody tr", { hasText: "shop/agent" }).getByText("zones/zone-a", { exact: true }).waitFor();
});

test("text of the cluster is text", async () => {
  await open(rollout("logs"));
  assert.equal((await cells("Held up by", "node-4")).Why, MARKUP);
  assert.equal((await cells("Checks", "errors"))["What it said"], MARKUP);
  assert.equal(await page.locator("main img").count(), 0);
  assert.notEqual(await page.title(), "1", "no script ran");
});

test("what is waited for: the end of a soak, a window, a person", async () => {
  await open(rollout("logs"));
  await policy().getByText("Soaks until", { exact: true }).waitFor();
  await policy().getByText("0 of 2 nodes without an available pod (stage canary)").waitFor();
  await page.getByText("Time left").waitFor();
  assert.match((await cells("Stages", "canary")).Soak, /^5\d min left$/);
  assert.equal((await cells("Checks", "errors")).Failed, "1 (at most 1)");
  await open(rollout("night"));
  await policy().getByText(/no window is open; the next one opens at \d{4}-/).waitFor();
  await open(rollout("quiet"));
  await policy().getByText("the policy is paused").waitFor();
  await open(rollout("edge"));
  await policy().getByText(/^Rejected .* ago: 2 nodes failed$/).waitFor();
  await page.getByRole("button", { name: "Copy: nodewise rollout resume daemonset/edge -n shop" }).waitFor();
  await open(rollout("many"));
  await policy().getByText(/maxExempt is 0.*goes on by itself when at most 0 are/).waitFor();
});

test("the keyboard reaches the approval's command", async () => {
  await open(rollout("agent"));
  await policy().getByText("Approval", { exact: true }).first().waitFor();
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? "");
  for (let press = 0; press < 60 && !(await focused()).startsWith("Copy: kubectl annotate"); press++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^kubectl annotate rolloutpolicy agent-policy /);
});

test("axe finds nothing in the views of policies, light and dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const view of ["/", ...["agent", "logs", "edge", "many"].map(rollout), `${rollout("agent")}?group=stage`, "/node/node-8"]) {
      await open(view);
      await page.locator("main tbody tr").first().waitFor();
      await page.locator(".live.on").waitFor();
      assert.deepEqual(await findings(page), [], `${view}, ${colorScheme}`);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
});
