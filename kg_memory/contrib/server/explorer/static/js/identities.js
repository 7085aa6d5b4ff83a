// Merging and splitting entities, and undoing both.

import { post } from "./api.js";
import { buttons, element, field, openDialog, toast } from "./dom.js";
import { count, t } from "./i18n.js";
import { look } from "./looking.js";
import { factWords, openEntity, spanOf } from "./pieces.js";
import { act } from "./review.js";
import { state } from "./store.js";

export function openMerge(place, entity) {
  const { graph } = look;
  openDialog(t("merge into", { name: entity.name }), (form, close) => {
    const input = element("input", { type: "search", autocomplete: "off", autofocus: true });
    const reason = element("input", { type: "text" });
    const stays = element("select", {}, element("option", { value: "this" }, entity.name), element("option", { value: "other" }, t("other entity")));
    const found = element("div.scroll", { role: "radiogroup", "aria-label": t("other entity") });
    const list = () => {
      const words = input.value.trim().toLowerCase();
      const matches = [...graph.entities.id.keys()].filter((one) => one !== place && (!words || graph.name(one).toLowerCase().includes(words)));
      const same = (one) => (graph.entityType[one] === graph.entityType[place] ? 0 : 1);
      matches.sort((a, b) => same(a) - same(b) || graph.mentions[b] - graph.mentions[a]);
      found.replaceChildren(...matches.slice(0, 30).map((one) => element("label.check", {}, element("input", { type: "radio", name: "other", value: graph.entities.id[one], required: true }),
        element("span", {}, graph.name(one), element("span.faint.small", {}, ` ${graph.types[graph.entityType[one]]} · ${count("facts", graph.factsOf.of(one).length)}`)))));
    };
    found.addEventListener("change", ({ target }) => { stays.options[1].text = graph.name(graph.entityPlace.get(target.value)); });
    input.addEventListener("input", list);
    list();
    form.append(element("p.soft", {}, t("merge intro")), field(t("other entity"), input), found, field(t("stays"), stays), field(t("reason"), reason), buttons(close, t("cancel"), element("button.primary", { type: "submit" }, t("merge"))));
    form.addEventListener("submit", () => {
      const other = new FormData(form).get("other");
      const [stay, go] = stays.value === "this" ? [entity.id, other] : [other, entity.id];
      act(async () => {
        const answer = await post(`entities/${encodeURIComponent(stay)}/merge`, { others: [go], reason: reason.value });
        if (state.id === go) openEntity(stay);
        const [decision] = Array.isArray(answer) ? answer : answer.items;
        toast(t("merged"), { label: t("undo"), run: () => undoDecision(decision) });
      });
    });
  });
}

export function openSplit(place, entity) {
  const { graph } = look;
  const facts = [...graph.factsOf.of(place)];
  openDialog(t("split from", { name: entity.name }), (form, close) => {
    const name = element("input", { type: "text", value: entity.name, required: true });
    const type = element("input", { type: "text", value: entity.type });
    const reason = element("input", { type: "text" });
    const boxes = facts.map((fact) => element("label.check", {}, element("input", { type: "checkbox", name: "fact", value: graph.facts.id[fact] }),
      element("span", {}, factWords(fact), element("span.faint.small", {}, ` ${spanOf(fact)}`))));
    form.append(element("p.soft", {}, t("split intro")), element("div.scroll", { role: "group", "aria-label": t("facts about the other") }, boxes), field(t("name of the other"), name), field(t("type"), type), field(t("reason"), reason),
      buttons(close, t("cancel"), element("button.primary", { type: "submit" }, t("split"))));
    form.addEventListener("submit", (event) => {
      const chosen = new FormData(form).getAll("fact");
      if (!chosen.length) { event.preventDefault(); toast(t("choose facts")); return; }
      act(async () => {
        const decision = await post(`entities/${encodeURIComponent(entity.id)}/split`, { facts: chosen, name: name.value, type: type.value, reason: reason.value });
        toast(t("split done"), { label: t("undo"), run: () => undoDecision(decision) });
        if (decision.second) openEntity(decision.second.id);
      });
    });
  });
}

export function undoDecision(decision) {
  return act(async () => {
    if (decision.kind === "split" && state.id === decision.second?.id) openEntity(decision.entity.id); // undoing a split removes the second entity
    await post(`identities/${encodeURIComponent(decision.id)}/undo`);
    toast(t("undone"));
  });
}
