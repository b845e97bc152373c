// The page in a real browser, against a real control plane with a rollout that gets stuck.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { dump, workloads } from "./cluster.mjs";
import { browser, controlPlane, dashboard, findings } from "./programs.mjs";

const NODES = 30;
const MISSING = "registry.example/missing:2";
const stops = [];
let cluster, page, site, context;

/** What must be cleaned up, the last first. */
const later = (stop) => stops.push(stop);

before(async () => {
  const opened = await browser();
  later(opened.stop);
  context = opened.context;
  cluster = await controlPlane(NODES);
  later(cluster.stop);
  const nodes = JSON.parse(await cluster.kubectl("get", "nodes", "-o", "json")).items.map((node) => node.metadata.name);
  const zones = ["zone-a", "zone-b", "zone-c"];
  for (const [index, zone] of zones.entries()) {
    const own = nodes.filter((_, at) => at % zones.length === index);
    await cluster.kubectl("label", "node", ...own, `topology.kubernetes.io/zone=${zone}`, `karpenter.sh/nodepool=${index ? "general" : "gpu"}`);
  }
  const file = join(await temporary(), "workloads.json");
  await writeFile(file, JSON.stringify(workloads));
  await cluster.kubectl("apply", "-f", file);
  for (const name of ["daemonset/agent", "deployment/web", "deployment/checkout"]) {
    await cluster.kubectl("-n", "shop", "rollout", "status", name, "--timeout=60s");
  }
  site = await dashboard("--kubeconfig", cluster.kubeconfig, "--trace-url", "https://traces.example/search?q={kind}/{name}&n={node}");
  later(site.stop);
  page = await context.newPage();
  page.on("pageerror", (error) => assert.fail(`the page has an error: ${error}`));
  // Answers such as 400 are checked where they are expected.
  const isAnswer = (text) => text.startsWith("Failed to load resource");
  page.on("console", (message) => {
    if (message.type() === "error" && !isAnswer(message.text())) assert.fail(`the console says ${message.text()}`);
  });
});

after(async () => {
  for (const stop of stops.toReversed()) await stop();
});

/** A port that nobody listens on. */
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

async function temporary() {
  const folder = await mkdtemp(join(tmpdir(), "nodewise-page-"));
  later(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const open = (path) => page.goto(`${site.origin}${path}`);
const shows = (text, within = page.locator("main")) => within.getByText(text).first().waitFor();
const rollout = "/rollout/DaemonSet/shop/agent";

/** A picture for docs/dashboard.md, if pictures are wanted. */
async function picture(name, colorScheme = "light") {
  if (!process.env.SCREENSHOTS) return;
  await page.emulateMedia({ colorScheme });
  await page.mouse.move(0, 0);
  await page.evaluate(() => (document.activeElement?.blur(), scrollTo(0, 0)));
  await page.screenshot({ path: join(process.env.SCREENSHOTS, `dashboard-${name}.png`) });
  await page.emulateMedia({ colorScheme: "light" });
}

test("a browser without the session sees no data, and the printed URL signs it in", async () => {
  await open(rollout);
  await shows("Not signed in");
  assert.deepEqual(await findings(page), []);
  await page.goto(site.url);
  await page.getByRole("link", { name: "shop/agent" }).waitFor();
  assert.equal(page.url(), `${site.origin}/`, "the token is not in the address bar");
  const again = await fetch(site.url, { redirect: "manual" });
  assert.equal(again.status, 401, "the URL signs one browser in");
  await page.goto(site.url);
  await page.getByRole("link", { name: "shop/agent" }).waitFor();
});

test("the overview has every workload, and counts by state", async () => {
  await open("/");
  for (const name of ["shop/agent", "shop/web", "shop/checkout", "kube-system/log-collector"]) {
    await page.getByRole("link", { name }).waitFor();
  }
  await page.getByRole("button", { name: "4 fine" }).waitFor();
  await page.getByRole("searchbox").fill("deploy");
  await page.getByRole("link", { name: "shop/agent" }).waitFor({ state: "detached" });
  assert.equal(new URL(page.url()).search, "?q=deploy", "a filter is in the permalink");
  await page.reload();
  await page.getByRole("link", { name: "shop/web" }).waitFor();
  assert.equal(await page.locator("tbody tr").count(), 2);
});

test("from kubectl set image to the cause on the page in five seconds", async () => {
  await open(rollout);
  await shows("complete");
  const began = Date.now();
  await cluster.kubectl("-n", "shop", "set", "image", "daemonset/agent", `agent=${MISSING}`);
  await page.locator("div.cause").getByText(/ImagePull/).first().waitFor({ timeout: 30_000 });
  const took = (Date.now() - began) / 1000;
  console.log(`from kubectl set image to the cause on the page: ${took.toFixed(1)} s`);
  assert.ok(took <= 5, `${took} s`);
  await shows("stuck");
  await cluster.kubectl("-n", "shop", "set", "image", "deployment/checkout", "checkout=registry.example/crashing:2");
});

test("the rollout shows nodes, causes, commands, timeline and template", async () => {
  await open(rollout);
  await page.locator(".word", { hasText: "stuck" }).waitFor();
  await page.getByRole("button", { name: "blocked 3" }).waitFor();
  await page.getByRole("button", { name: "waiting 27" }).waitFor();
  for (const zone of ["zone-a", "zone-b", "zone-c"]) await page.locator(".grid-head", { hasText: zone }).waitFor();
  await page.getByRole("button", { name: "pool", exact: true }).click();
  await page.locator(".grid-head", { hasText: "gpu" }).waitFor();
  await page.getByRole("button", { name: "cause", exact: true }).click();
  await page.locator(".grid-head", { hasText: /ImagePull/ }).waitFor();
  assert.equal(new URL(page.url()).search, "?group=cause");
  await open(rollout);
  await page.locator(".grid-head", { hasText: "zone-a" }).waitFor();
  await page.locator(".diff .add").first().waitFor();
  await picture("rollout");
  await picture("rollout-dark", "dark");
  await page.waitForFunction(() => {
    const canvas = document.querySelector(".grid canvas");
    if (!canvas?.width || !canvas.height) return false;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.some((value, index) => index % 4 === 3 && value > 0);
  });
  await page.getByRole("button", { name: "blocked 3" }).click();
  assert.equal(await page.getByRole("group", { name: "Nodes", exact: true }).locator("tbody tr").count(), 3, "the table beside the picture");
  await page.locator(".diff .add", { hasText: MISSING }).waitFor();
  await page.locator(".diff .remove", { hasText: "registry.example/agent:1" }).waitFor();
  await page.locator(".events li.cause", { hasText: /ImagePull/ }).waitFor();
  const undo = page.getByRole("button", { name: "Copy: nodewise rollout undo daemonset/agent -n shop" });
  await undo.click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "nodewise rollout undo daemonset/agent -n shop");
});

test("a Deployment has its pods that are not available", async () => {
  await open("/rollout/Deployment/shop/checkout");
  await page.locator("div.cause", { hasText: /CrashLoopBackOff/ }).waitFor({ timeout: 30_000 });
  await page.getByRole("group", { name: "Pods", exact: true }).locator("tbody tr", { hasText: "CrashLoopBackOff" }).first().waitFor();
  await open("/");
  await page.getByRole("button", { name: "2 fine" }).waitFor();
  await picture("overview");
});

test("a node has every workload on it", async () => {
  await open(`${rollout}?state=UNIT_STATE_BLOCKED`);
  await page.getByRole("group", { name: "Nodes", exact: true }).locator("tbody a").first().click();
  await page.waitForURL("**/node/*");
  const row = page.locator("tbody tr", { hasText: "shop/agent" });
  await row.getByText("blocked").waitFor();
  await row.getByText(/ImagePull/).first().waitFor();
  await page.locator("tbody tr", { hasText: "kube-system/log-collector" }).getByText("done").waitFor();
  await picture("node");
  const name = await page.locator("h1").textContent();
  const trace = await row.getByRole("link", { name: "Traces" }).getAttribute("href");
  assert.equal(trace, `https://traces.example/search?q=daemonset/agent&n=${name.trim()}`);
  await cluster.kubectl("cordon", name.trim());
  await shows(/cordoned/);
});

test("what if plays a change on the grid, and says what is wrong with one", async () => {
  await open("/what-if?kind=DaemonSet&namespace=kube-system&name=log-collector");
  const manifest = page.getByLabel("Manifest");
  await page.waitForFunction(() => document.querySelector("textarea").value.includes("registry.example/logs:7"));
  await manifest.fill((await manifest.inputValue()).replace("logs:7", "logs:8"));
  await page.getByLabel("Ready after").fill("30");
  await page.getByRole("button", { name: "Play", exact: true }).click();
  await shows(/registry.example\/logs:7 → registry.example\/logs:8/);
  await page.locator(".verdict", { hasText: /^Done after \d+ min, at worst 1 node without an available pod/ }).waitFor();
  await page.getByRole("slider", { name: "Step" }).focus();
  await page.keyboard.press("End");
  await page.locator(".player .number", { hasText: /^(\d+)\/\1$/ }).waitFor();
  await shows(`${NODES} of ${NODES} updated`);
  await page.getByRole("slider", { name: "Step" }).fill("24");
  await picture("what-if");
  await manifest.fill("kind: DaemonSet\nmetadata: [");
  await page.getByRole("button", { name: "Play", exact: true }).click();
  await page.getByRole("alert").getByText(/this is not YAML/).waitFor();
  await manifest.fill("kind: DaemonSet\nmetadata:\n  name: none\n");
  await page.getByRole("button", { name: "Play", exact: true }).click();
  await page.getByRole("alert").getByText("there is no DaemonSet default/none").waitFor();
});

test("what if plays a Deployment by its replicas", async () => {
  await open("/what-if?kind=Deployment&namespace=shop&name=web");
  const manifest = page.getByLabel("Manifest");
  await page.waitForFunction(() => document.querySelector("textarea").value.includes("registry.example/web:1"));
  await manifest.fill((await manifest.inputValue()).replace("web:1", "web:2"));
  await page.getByLabel("Pods that fail").fill("50");
  await page.getByRole("button", { name: "Play", exact: true }).click();
  await shows(/registry.example\/web:1 → registry.example\/web:2/);
  await page.locator(".verdict", { hasText: /^Stuck after .*replicas? without an available pod: / }).waitFor();
  await page.getByRole("slider", { name: "Step" }).focus();
  await page.keyboard.press("End");
  await page.locator(".player .number", { hasText: /^(\d+)\/\1$/ }).waitFor();
  await page.locator(".grid").focus();
  await page.keyboard.press("Home");
  await page.locator(".grid-says", { hasText: /^replica 1: done/ }).waitFor();
  await page.keyboard.press("End");
  await page.locator(".grid-says", { hasText: /^replica 8: (blocked|waiting)/ }).waitFor();
  await page.locator(".grid-head .bad", { hasText: /\d blocked/ }).waitFor();
});

test("the takeover says that both controllers agree", async () => {
  await open("/takeover");
  await shows("0 of 4 workloads diverge");
  await shows(/kube-controller-manager/);
  await picture("takeover");
});

test("the keyboard is enough", async () => {
  await open("/");
  await page.getByRole("link", { name: "shop/agent" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("agent");
  await page.getByRole("link", { name: "shop/web" }).waitFor({ state: "detached" });
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  for (let press = 0; press < 10 && (await focused()) !== "shop/agent"; press++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForURL(`**${rollout}`);
  await page.locator(".grid canvas").first().waitFor();
  const inGrid = () => page.evaluate(() => document.activeElement.classList.contains("grid"));
  for (let press = 0; press < 40 && !(await inGrid()); press++) await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.locator(".grid-says", { hasText: /: (blocked|waiting)\./ }).waitFor();
  const name = (await page.locator(".grid-says").textContent()).split(":")[0];
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/node/${name}`);
  await page.locator("tbody tr").first().waitFor();
  await page.goBack();
  await page.waitForURL(`**${rollout}`);
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await page.waitForURL("**/takeover");
});

test("axe finds nothing in any view, light and dark", async () => {
  const name = (await cluster.kubectl("get", "nodes", "-o", "name")).split("\n")[0].replace("node/", "");
  const views = ["/", rollout, "/rollout/Deployment/shop/checkout", "/node", `/node/${name}`, "/what-if", "/takeover"];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const view of views) {
      await open(view);
      await page.locator("main h1, .tiles").first().waitFor();
      await page.locator(".live.on").waitFor();
      assert.deepEqual(await findings(page), [], `${view}, ${colorScheme}`);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
});

test("the page says when its server is away", async () => {
  await open("/");
  await page.locator(".live.on").waitFor();
  const own = await dashboard("--kubeconfig", cluster.kubeconfig);
  later(own.stop);
  const other = await context.newPage();
  await other.goto(own.url);
  await other.getByRole("link", { name: "shop/agent" }).waitFor();
  await own.stop();
  await other.locator(".live.off").waitFor();
  await other.getByRole("alert").waitFor();
  await other.getByRole("link", { name: "shop/agent" }).waitFor();
  await other.close();
});

test("with bearer tokens each caller sees what the token may read", async () => {
  const port = await freePort();
  const host = `127.0.0.1:${port}`;
  const many = await dashboard("--kubeconfig", cluster.kubeconfig, "--listen", host, "--allow-host", host);
  later(many.stop);
  const resources = ["nodes", "pods", "daemonsets.apps", "replicasets.apps", "deployments.apps", "controllerrevisions.apps"];
  await cluster.kubectl("create", "clusterrole", "reader", "--verb=list,watch", `--resource=${resources}`);
  const tokens = {};
  for (const name of ["reader", "stranger"]) {
    await cluster.kubectl("-n", "shop", "create", "serviceaccount", name);
    tokens[name] = (await cluster.kubectl("-n", "shop", "create", "token", name)).trim();
  }
  await cluster.kubectl("create", "clusterrolebinding", "reader", "--clusterrole=reader", "--serviceaccount=shop:reader");
  const api = (token) => fetch(`http://${host}/api/v1/session`, { headers: token ? { authorization: `Bearer ${token}` } : {} });
  assert.equal((await api("")).status, 401);
  assert.equal((await api("wrong")).status, 401);
  const sign = async (token, namespaces = "") => {
    const other = await context.newPage();
    await other.goto(`http://${host}${rollout}`);
    await other.getByLabel("Namespaces").fill(namespaces);
    await other.getByLabel("Token").fill("wrong");
    await other.getByRole("button", { name: "Sign in" }).click();
    await other.getByRole("alert").getByText("the cluster does not accept this token").waitFor();
    assert.deepEqual(await findings(other), []);
    await other.getByLabel("Token").fill(token);
    await other.getByRole("button", { name: "Sign in" }).click();
    return other;
  };
  const reader = await sign(tokens.reader);
  await reader.locator(".word", { hasText: "stuck" }).waitFor();
  await reader.close();
  const stranger = await sign(tokens.stranger);
  await stranger.getByRole("alert").getByText(/cannot watch .*forbidden/).waitFor();
  await stranger.getByRole("heading", { name: "A right is missing" }).waitFor();
  assert.deepEqual(await findings(stranger), []);
  assert.equal(await stranger.locator("tbody tr").count(), 0);

  // With a Role in one namespace the page shows that one, and says that there are no nodes.
  await cluster.kubectl("-n", "shop", "create", "role", "reader", "--verb=list,watch", `--resource=${resources.slice(1)}`);
  await cluster.kubectl("-n", "shop", "create", "rolebinding", "reader", "--role=reader", "--serviceaccount=shop:stranger");
  await stranger.getByLabel("Namespaces").fill("Shop");
  await stranger.getByRole("button", { name: "Show" }).click();
  await stranger.getByRole("alert").getByText(/has "Shop"; expected names of namespaces/).waitFor();
  await stranger.getByLabel("Namespaces").fill("shop");
  await stranger.getByRole("button", { name: "Show" }).click();
  await stranger.getByRole("alert").getByText(/The right to list and watch nodes of the cluster is missing/).waitFor();
  await stranger.goto(`http://${host}/`);
  await stranger.getByRole("link", { name: "shop/web" }).waitFor();
  await stranger.getByText("the right to list nodes is missing").first().waitFor();
  assert.equal(await stranger.getByRole("link", { name: "kube-system/log-collector" }).count(), 0);
  await stranger.getByRole("button", { name: "Sign out" }).click();
  await stranger.getByLabel("Token").waitFor();
  await stranger.close();

  const named = await sign(tokens.stranger, "shop");
  await named.locator(".cluster", { hasText: "shop" }).waitFor();
  await named.close();
});

test("15,000 nodes scroll with 30 frames a second", async () => {
  const file = join(await temporary(), "dump.json");
  await dump(file, 15_000);
  const large = await dashboard("-f", file);
  later(large.stop);
  const began = Date.now();
  await page.goto(large.url);
  await page.getByRole("link", { name: "shop/agent" }).waitFor({ timeout: 60_000 });
  await page.goto(`${large.origin}${rollout}`);
  await page.getByRole("button", { name: "blocked 60" }).waitFor({ timeout: 30_000 });
  console.log(`15,000 nodes are shown after ${((Date.now() - began) / 1000).toFixed(1)} s`);
  const rate = await page.locator(".grid").evaluate(
    (grid) =>
      new Promise((resolve) => {
        const frames = [];
        const begin = performance.now();
        const frame = (now) => {
          frames.push(now);
          grid.scrollTop = ((now - begin) / 3000) * (grid.scrollHeight - grid.clientHeight);
          if (now - begin < 3000) requestAnimationFrame(frame);
          else resolve({ rate: (1000 * (frames.length - 1)) / (now - frames[0]), height: grid.scrollHeight, top: grid.scrollTop });
        };
        requestAnimationFrame(frame);
      }),
  );
  console.log(`scrolling ${rate.height} pixels of 15,000 nodes: ${rate.rate.toFixed(0)} frames a second`);
  assert.ok(rate.top > 1000, "it has scrolled");
  assert.ok(rate.rate >= 30, `${rate.rate} frames a second`);
  await picture("15000");
});
