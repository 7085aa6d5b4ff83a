import type { components } from "./openapi.js";

/** The longest delay that the client waits because the server asks for it, in seconds. */
const LONGEST_DELAY = 60;
/** The shortest and the longest pause before a request is repeated, if the server names none, in seconds. */
const [FIRST_PAUSE, LAST_PAUSE] = [0.5, 20];
const LONGEST_DETAIL = 1000;

/** An invalid field of a request: its path, such as `body.limit`, and what is wrong with it. */
export interface FieldError {
  readonly field: string;
  readonly message: string;
}

type Problem = components["schemas"]["Problem"];

/** The only error of this client, except for the reason of an aborted signal. */
export class KGMemoryError extends Error {
  override readonly name = "KGMemoryError";
  /** The HTTP status; 0 if there was no answer, or none that could be read. */
  readonly status: number;
  /** The kind of the problem, the same for each status: `Not found`. */
  readonly title: string;
  /** What was wrong, and what to do. */
  readonly detail: string;
  /** The id of the request in the log of the server; empty if there was no answer. */
  readonly requestId: string;
  /** The invalid fields, at most 20. */
  readonly errors: readonly FieldError[];
  /** Seconds after which the server asks to repeat the request. */
  readonly retryAfter: number | undefined;

  constructor(problem: Partial<Problem>, options: ErrorOptions & { retryAfter?: number } = {}) {
    const { status = 0, title = "No answer", detail = "" } = problem;
    super(status ? `${status} ${title}: ${detail}` : `${title}: ${detail}`, options);
    [this.status, this.title, this.detail, this.retryAfter] = [status, title, detail, options.retryAfter];
    this.requestId = problem.request_id ?? "";
    this.errors = (problem.errors ?? []).map(({ field = "", message = "" }) => ({ field, message }));
  }

  /** Return the error of a *response*, whose *body* is a problem, or the text of a proxy. */
  static fromResponse(response: Response, body: unknown): KGMemoryError {
    const problem: Partial<Problem> =
      typeof body === "object" && body !== null
        ? body
        : { title: response.statusText || "Refused", detail: String(body ?? "").slice(0, LONGEST_DETAIL) };
    const requestId = response.headers.get("X-Request-ID") ?? "";
    const retryAfter = parseRetryAfter(response.headers.get("Retry-After"));
    return new KGMemoryError({ request_id: requestId, ...problem, status: response.status }, { retryAfter });
  }

  /** Return the error of a request without a readable answer, because of *cause*. */
  static fromCause(cause: unknown): KGMemoryError {
    const inner = cause instanceof Error && cause.cause instanceof Error ? `: ${cause.cause.message}` : "";
    return new KGMemoryError({ detail: `${cause instanceof Error ? cause.message : cause}${inner}` }, { cause });
  }

  /**
   * Return the seconds to wait before the request is repeated, after *tries* earlier repetitions; undefined if it must
   * not be repeated. *safe*: whether the server may handle the request twice.
   *
   * The server sends 429 with `Retry-After` before it begins, so such a request is always repeated.
   */
  delay(tries: number, safe: boolean): number | undefined {
    const wasRefused = this.status === 429 && this.retryAfter !== undefined;
    if (!wasRefused && !(safe && [0, 429, 502, 503, 504].includes(this.status))) return undefined;
    if ((this.retryAfter ?? 0) > LONGEST_DELAY) return undefined;
    const pause = Math.min(LAST_PAUSE, FIRST_PAUSE * 2 ** tries) * (0.5 + Math.random() / 2);
    return this.retryAfter === undefined ? pause : this.retryAfter + Math.random() * FIRST_PAUSE;
  }
}

/** Return the seconds in a header `Retry-After`, which has seconds or a date; undefined if it has neither. */
function parseRetryAfter(text: string | null): number | undefined {
  if (!text) return undefined;
  const seconds = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
