// Builds the page from web/ to assets/, or to the folder that is given. Equal sources make equal bytes.
import { copyFile, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "assets");
await mkdir(out, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { app: "web/main.tsx" },
  bundle: true,
  charset: "utf8",
  format: "iife",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  minify: true,
  outdir: out,
  target: ["es2022"],
});
for (const name of ["index.html", "icon.svg"]) {
  await copyFile(join(here, "web", name), join(out, name));
}
