// Proves that the files in assets/ are what `npm run build` makes of web/, that they are small, and that the lock file names no registry.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "assets");
const built = mkdtempSync(join(tmpdir(), "nodewise-assets-"));
try {
  execFileSync(process.execPath, [join(here, "build.mjs"), built]);
  assert.deepEqual(readdirSync(built).sort(), readdirSync(assets).sort());
  let bytes = 0;
  for (const name of readdirSync(built)) {
    const fresh = readFileSync(join(built, name));
    bytes += fresh.length;
    assert.ok(fresh.equals(readFileSync(join(assets, name))), `assets/${name} is old: run npm run build in dashboard/`);
  }
  assert.ok(bytes < 300_000, `${bytes} bytes`);
  const lock = readFileSync(join(here, "package-lock.json"), "utf8");
  assert.ok(!lock.includes('"resolved"'), "package-lock.json names a registry: .npmrc must have omit-lockfile-registry-resolved");
  console.log(`assets/ is fresh: ${bytes} bytes`);
} finally {
  rmSync(built, { recursive: true });
}
