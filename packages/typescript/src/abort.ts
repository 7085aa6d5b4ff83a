/**
 * Return what *promise* gives. Throws the reason of *signal* as soon as it is aborted.
 *
 * `fetch` alone does not suffice: in Node, after a garbage collection, the signal no longer reaches an open stream.
 */
export function orAbort<T>(promise: Promise<T>, signal?: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal?.reason);
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort);
    promise.then(resolve, reject).finally(() => signal?.removeEventListener("abort", abort));
  });
}

/** Wait *milliseconds*. Throws the reason of *signal* as soon as it is aborted. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout>;
  const pause = new Promise<void>((resolve) => (timer = setTimeout(resolve, milliseconds)));
  return orAbort(pause, signal).finally(() => clearTimeout(timer));
}
