import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { Node, patience, token } from "./node.js";

const folder = process.env["WAKEBELL_TEST_PACKAGE"] ?? "."; // where the package is installed
const run = promisify(execFile);

test("the node of the readme leaves the shell and has the token of the programs", () => {
  const text = readFileSync("README.md", "utf8");
  assert.match(text, /^ {4}wakebell .* node .* &$/m);
  assert.match(text, /^ {4}export WAKEBELL_TOKEN=/m);
});

describe("the programs of the readme", () => {
  const node = new Node();
  before(() => node.start());
  after(() => node.end("SIGTERM"));

  const programs = [...readFileSync("README.md", "utf8").matchAll(/```ts\n([^]*?)```\n\nIt prints:\n\n((?: {4}.*\n)+)/g)];
  assert.equal(programs.length, 2);
  test("they compile", async () => {
    const sources = programs.map(([, program], n) => {
      writeFileSync(join(folder, `program${n}.mts`), (program as string).replace("127.0.0.1:7070", node.address));
      return `program${n}.mts`;
    });
    const settings = ["--strict", "--target", "es2022", "--module", "nodenext", "--types", "node"];
    await run(process.execPath, ["node_modules/typescript/bin/tsc", ...settings, ...sources], { cwd: folder });
  });
  programs.forEach(([, , output], n) => {
    test(`program ${n} prints what the readme shows`, async () => {
      const env = { ...process.env, WAKEBELL_TOKEN: token };
      const { stdout } = await run(process.execPath, [`program${n}.mjs`], { cwd: folder, env, timeout: patience });
      assert.equal(stdout, (output as string).replace(/^ {4}/gm, ""));
    });
  });
});
