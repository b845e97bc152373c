// Starts and ends what the tests need: a control plane, the page, and Chromium.

import { execFile, execFileSync, spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const programs = process.env.NODEWISE_PROGRAMS;
if (!programs) throw new Error("NODEWISE_PROGRAMS must be the folder with nodewise and nodewise-testbed");
const run = promisify(execFile);

/** Starts a program, and waits for the first line of its output that matches. */
export async function start(name, args, wanted, seconds) {
  const child = spawn(join(programs, name), args, { stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text) => (errors += text));
  const ended = new Promise((resolve) => child.on("close", resolve));
  const stop = async () => {
    child.kill("SIGINT");
    await ended;
  };
  let timer;
  const line = new Promise((resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${name} says nothing like ${wanted} in ${seconds} s: ${errors}`)), seconds * 1000);
    createInterface({ input: child.stdout }).on("line", (line) => {
      const found = wanted.exec(line);
      if (found) resolve(found);
    });
    void ended.then((code) => reject(new Error(`${name} has ended with ${code}: ${errors}`)));
  });
  try {
    return { found: await line, stop };
  } catch (error) {
    await stop();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** A control plane with all built-in controllers. */
export async function controlPlane(nodes) {
  const { found, stop } = await start("nodewise-testbed", ["up", "--nodes", String(nodes), "--controllers", "*"], /^export KUBECONFIG=(.*)$/, 300);
  const kubeconfig = found[1];
  const program = execFileSync(join(programs, "nodewise-testbed"), ["tool", "kubectl"], { encoding: "utf8" }).trim();
  const kubectl = async (...args) => (await run(program, args, { env: { ...process.env, KUBECONFIG: kubeconfig } })).stdout;
  return { kubeconfig, kubectl, stop };
}

/** The page; the URL signs in. */
export async function dashboard(...args) {
  const { found, stop } = await start("nodewise", ["dashboard", ...args], /^(http:\/\/([^/]*)(\/login.*)?)$/, 60);
  return { url: found[1], origin: `http://${found[2]}`, stop };
}

/** A browser with a profile of its own. */
export async function browser() {
  const path = execFileSync(join(here, "chromium.sh"), { encoding: "utf8" }).trim();
  const profile = await mkdtemp(join(tmpdir(), "nodewise-chromium-"));
  const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: path,
    headless: true,
    args: flags,
    viewport: { width: 1440, height: 900 },
    permissions: ["clipboard-read", "clipboard-write"],
  });
  context.setDefaultTimeout(15_000);
  const stop = async () => {
    await context.close();
    await rm(profile, { recursive: true, force: true });
  };
  return { context, stop };
}

const axe = await readFile(join(here, "../node_modules/axe-core/axe.min.js"), "utf8");

/** What axe finds on a page. */
export async function findings(page) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return result.violations.flatMap(({ id, help, nodes }) => nodes.map((node) => `${id}: ${help}: ${node.html}`));
}
