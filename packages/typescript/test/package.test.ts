/** The package: its files, and types without `any`. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { promisify } from "node:util";

const run = promisify(execFile);

test("package has only the built files, README and LICENSE", async () => {
  const { stdout } = await run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"]);
  const packed: string[] = JSON.parse(stdout)[0].files.map((file: { path: string }) => file.path);
  const built = (await readdir("dist")).map((name) => `dist/${name}`);
  assert.deepEqual(packed.sort(), ["LICENSE", "README.md", "package.json", ...built].sort());
});

test("public types have no any, and the code no modules of Node", async () => {
  for (const name of await readdir("dist")) {
    const text = await readFile(`dist/${name}`, "utf8");
    const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");
    assert.doesNotMatch(code, name.endsWith(".d.ts") ? /\bany\b/ : /node:|\bprocess\b|\bBuffer\b/, name);
  }
});
