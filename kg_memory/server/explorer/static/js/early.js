// Ask for the graph that the address names before the libraries that draw it are there.

import { readGraph } from "./data.js";
import { readLink, state } from "./store.js";

readLink();
// Nothing where no namespace is named, or where it cannot be read yet, as without a key: then it is read as any other.
export const early = state.ns ? readGraph(state.ns).catch(() => null) : null;
