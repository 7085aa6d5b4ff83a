// Reload the graph after a change. main.js sets the function, because all modules need it.

let run = async () => {};

export function onRefresh(callback) {
  run = callback;
}

export function refresh() {
  return run();
}
