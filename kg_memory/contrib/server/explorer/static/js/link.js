// The panel that lists the facts between two entities when a line of the graph stands for several.

import { element } from "./dom.js";
import { t } from "./i18n.js";
import { look } from "./looking.js";
import { entityLink, factLines } from "./pieces.js";
import { state } from "./store.js";

export function showLink() {
  const { graph } = look;
  const [subject, object] = state.id.split(" ").map((id) => graph.entityPlace.get(id) ?? -1);
  const facts = subject < 0 || object < 0 ? [] : [...graph.factsOf.of(subject)].filter((fact) => [graph.subject[fact], ...graph.facts.object[fact]].includes(object));
  return [
    element("div.title", {}, element("h2", {}, entityLink(subject), " – ", entityLink(object)), element("p.soft", {}, t("facts between"))),
    facts.length ? factLines(facts) : element("p", {}, t("nothing here")),
  ];
}
