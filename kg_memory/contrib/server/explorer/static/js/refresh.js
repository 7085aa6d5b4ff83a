// Read again what the server has, after something was changed; set up by main.js, as everything needs it.

let run = async () => {};

export function onRefresh(callback) {
  run = callback;
}

export function refresh() {
  return run();
}
