// Events come in bursts, and large graphs take longer to read: the pause before the next read grows with the last duration.

import { refresh } from "./refresh.js";

let waiting = 0;
let took = 0;
let reading = false;

export function refreshSoon() {
  if (waiting || reading) return;
  waiting = setTimeout(async () => {
    waiting = 0;
    reading = true;
    const began = performance.now();
    try {
      await refresh();
    } finally {
      took = performance.now() - began;
      reading = false;
    }
  }, Math.max(400, 6 * took));
}
