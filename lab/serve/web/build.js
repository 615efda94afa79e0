// Bundles src/ into dist/, which is committed, so that a clone builds without node. `node build.js --check` checks whether dist/ is up to date.
import { build } from "esbuild";
import { readFile, readdir, rm } from "node:fs/promises";
import { gunzipSync, gzipSync } from "node:zlib";

const MAX_OCTETS = 250_000;
const check = process.argv.includes("--check");
const outdir = new URL("dist/", import.meta.url);

const { outputFiles } = await build({
  absWorkingDir: new URL(".", import.meta.url).pathname,
  entryPoints: ["src/page.css", "src/icon.svg", "src/home.js", "src/new.js", "src/experiment.js", "src/compare.js", "src/forms.js", "src/files.js"],
  outdir: "dist",
  bundle: true,
  format: "esm",
  splitting: true,
  minify: true,
  loader: { ".svg": "copy" },
  target: "es2022",
  legalComments: "none",
  write: false,
  chunkNames: "part-[hash]",
});

const size = outputFiles.reduce((sum, file) => sum + gzipSync(file.contents).length, 0);
if (size > MAX_OCTETS) throw new Error(`the compressed size is ${size} octets; at most ${MAX_OCTETS} are allowed`);

const name = (file) => file.path.split("/").at(-1);
// The server does not compress, so files that become smaller are compressed here.
for (const file of [...outputFiles]) {
  const contents = gzipSync(file.contents, { level: 9 });
  if (contents.length < 0.9 * file.contents.length) outputFiles.push({ path: `${file.path}.gz`, contents, plain: file.contents });
}
const present = new Set(await readdir(outdir).catch(() => []));
const stale = [];
for (const file of outputFiles) {
  const old = present.delete(name(file)) ? await readFile(new URL(name(file), outdir)) : Buffer.alloc(0);
  // Compares decompressed contents, because the output of zlib depends on its version.
  const same = file.plain && old.length ? gunzipSync(old).equals(file.plain) : old.equals(file.contents);
  if (!same) stale.push(file);
}
if (check) {
  if (stale.length || present.size) {
    console.error(`dist/ is not up to date: ${[...stale.map(name), ...present].join(", ")}; run scripts/build-web`);
    process.exit(1);
  }
} else {
  const { mkdir, writeFile } = await import("node:fs/promises");
  await mkdir(outdir, { recursive: true });
  for (const file of stale) await writeFile(new URL(name(file), outdir), file.contents);
  for (const old of present) await rm(new URL(old, outdir));
}
console.log(`${outputFiles.length} files, ${size} octets compressed`);
