export * from "./client.js";
export { type FieldError, KGMemoryError } from "./errors.js";
export type { Counts, EpisodeState, FactChange, MemoryEvent } from "./events.js";
export type { components, operations, paths } from "./openapi.js";
