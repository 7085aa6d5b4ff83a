/** Start `kg-memory serve` for the tests and for `npm run generate`: embedded database, offline reader, own folder. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

const START_SECONDS = 180;

/** The Python command: the variable KG_MEMORY_COMMAND, else that of the clone, else the one on the PATH. */
const IN_CLONE = "../../.venv/bin/kg-memory";
const NAMED = process.env.KG_MEMORY_COMMAND ?? (existsSync(IN_CLONE) ? IN_CLONE : "kg-memory");
const COMMAND = NAMED.includes("/") ? resolve(NAMED) : NAMED;

/**
 * Start a server on a free port, with one API key of all scopes.
 *
 * Throws if the command is missing or the server does not answer within 180 seconds.
 * @returns {Promise<{baseUrl: string, apiKey: string, version: string, stop: () => Promise<void>}>}
 */
export async function startServer() {
  const folder = await mkdtemp(join(tmpdir(), "kg-memory-"));
  // Without the settings of the developer, in variables or in a file .env here: they may name another database.
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith("KG_MEMORY_"));
  const own = { KG_MEMORY_DATA_DIR: folder, KG_MEMORY_MODEL: "offline", KG_MEMORY_IDLE_SECONDS: "1" };
  const options = { env: { ...Object.fromEntries(others), ...own }, cwd: folder };
  const run = promisify(execFile);
  const version = (await run(COMMAND, ["--version"], options)).stdout.trim();
  const create = ["keys", "create", "test", "--scope", "read,write,review,forget", "--json"];
  const apiKey = JSON.parse((await run(COMMAND, create, options)).stdout).secret;
  const port = await findFreePort();
  const server = spawn(COMMAND, ["serve", "--port", `${port}`, "--rate", "1000"], {
    ...options,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  server.stderr.on("data", (data) => (log += data));
  const stop = async () => {
    if (server.exitCode === null && server.signalCode === null && server.kill("SIGTERM")) await once(server, "exit");
    await delay(1500); // the embedded database ends a second after its last client
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  const baseUrl = `http://127.0.0.1:${port}`;
  const end = Date.now() + START_SECONDS * 1000;
  while (!(await fetch(`${baseUrl}/healthz`).then((answer) => answer.ok, () => false))) {
    if (server.exitCode !== null || Date.now() > end) {
      await stop();
      throw new Error(`kg-memory serve did not start: ${log}`);
    }
    await delay(100);
  }
  return { baseUrl, apiKey, version, stop };
}

/** @returns {Promise<number>} */
async function findFreePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  if (address === null || typeof address === "string") throw new Error("no free port");
  return address.port;
}
