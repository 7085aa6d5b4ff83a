/** Write src/openapi.ts, the types of the HTTP API, from the description that a server gives: `npm run generate`. */
import { writeFile } from "node:fs/promises";
import { argv } from "node:process";
import { pathToFileURL } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";
import { startServer } from "./server.mjs";

export const TARGET = "src/openapi.ts";
const PROBLEM = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };
const HEADER = "// Written by `npm run generate` from the OpenAPI description of the server. Do not edit.\n\n";

/**
 * Return the TypeScript text of the types of the server at *baseUrl*.
 *
 * - All errors of a route become one `default` answer, because all have the same form.
 * - Fields with defaults are optional in requests, and always present in answers.
 * @param {string} baseUrl
 */
export async function generate(baseUrl) {
  const description = await (await fetch(`${baseUrl}/openapi.json`)).json();
  const schemas = description.components.schemas;
  const requested = new Set(["Problem"]);
  for (const path of Object.values(description.paths)) {
    for (const operation of Object.values(path)) {
      collect(operation.requestBody, schemas, requested);
      const errors = Object.keys(operation.responses).filter((status) => status >= "400");
      for (const status of errors) delete operation.responses[status];
      if (errors.length) operation.responses.default = { description: "A problem (RFC 9457).", content: PROBLEM };
    }
  }
  for (const [name, schema] of Object.entries(schemas)) {
    if (schema.properties && !requested.has(name)) schema.required = Object.keys(schema.properties);
  }
  dropTitles(description);
  return HEADER + astToString(await openapiTS(description, { defaultNonNullable: false }));
}

/**
 * Add the names of the schemas that *node* uses, directly or through others, to *found*.
 * @param {unknown} node
 * @param {Record<string, unknown>} schemas
 * @param {Set<string>} found
 */
function collect(node, schemas, found) {
  for (const [, name = ""] of JSON.stringify(node ?? null).matchAll(/#\/components\/schemas\/([^"]+)/g)) {
    if (found.has(name)) continue;
    found.add(name);
    collect(schemas[name], schemas, found);
  }
}

/**
 * Remove titles such as "Valid At" of the field `valid_at`: they say nothing new.
 * @param {unknown} node
 */
function dropTitles(node) {
  if (node === null || typeof node !== "object") return;
  if ("title" in node && typeof node.title === "string") delete node.title;
  Object.values(node).forEach(dropTitles);
}

if (argv[1] && import.meta.url === pathToFileURL(argv[1]).href) {
  const server = await startServer();
  try {
    await writeFile(TARGET, await generate(server.baseUrl));
  } finally {
    await server.stop();
  }
}
