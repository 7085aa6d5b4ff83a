import { orAbort } from "./abort.js";
import type { components } from "./openapi.js";

type Schemas = components["schemas"];
type Episode = Schemas["Episode"];
/** T, in which fields that may be null are left out instead. */
type Sparse<T> = { [K in keyof T as null extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as null extends T[K] ? K : never]?: NonNullable<T[K]>;
};

/** A change of what the memory believes about a fact: the fact before and after it. Empty fields are left out. */
export interface FactChange {
  at: string;
  kind: Schemas["Change"]["kind"];
  before?: Sparse<Schemas["Fact"]>;
  after?: Sparse<Schemas["Fact"]>;
  cause?: string;
}

/** The state of an episode: the first 200 characters of its content, and the cost of reading it (`seconds` of time). */
export interface EpisodeState
  extends Pick<
    Episode,
    | ("id" | "content" | "speaker" | "thread" | "source_id" | "at" | "created_at")
    | ("status" | "reason" | "step" | "plan" | "attempts")
  > {
  took: { calls?: number; input_tokens?: number; output_tokens?: number; seconds?: number };
}

/** The number of episodes, in all and in each state, and the model calls and tokens of today. */
export type Counts = Record<
  | ("episodes" | "saved" | "waiting" | "working" | "failed")
  | ("calls" | "input_tokens" | "output_tokens" | "cached_tokens"),
  number
>;

/** Something that happened in a namespace. Pass its `id` as `lastEventId` to go on after it. */
export type MemoryEvent = { id: string } & (
  | { name: "episode"; data: EpisodeState }
  | { name: `fact.${FactChange["kind"]}` | "fact.disputed"; data: FactChange }
  | { name: "counts"; data: Counts }
);

/**
 * Yield the events in *body*, a stream of server-sent events, until it ends. Cancels the stream when left early.
 *
 * Throws the reason of *signal* as soon as it is aborted.
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<MemoryEvent, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await orAbort(reader.read(), signal);
      if (done) return;
      const blocks = (text + decoder.decode(value, { stream: true })).split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined); // it fails if the connection is broken, which ends it too
  }
}

/** Return the event in *block*, lines such as `id: 1-1`; undefined for a comment or the time of reconnection. */
function parseEvent(block: string): MemoryEvent | undefined {
  const fields = new Map(block.split("\n").map((line) => line.split(/: (.*)/s, 2) as [string, string]));
  const data = fields.get("data");
  if (data === undefined) return undefined;
  return { id: fields.get("id"), name: fields.get("event"), data: JSON.parse(data) } as MemoryEvent;
}
