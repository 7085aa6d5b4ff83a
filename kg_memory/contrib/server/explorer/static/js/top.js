// The top bar: namespace, search, language, light and dark mode.

import { get, secret } from "./api.js";
import { buttons, element, field, glyph, iconButton, openDialog, replace, toast } from "./dom.js";
import { language, t } from "./i18n.js";
import { openHelp } from "./keyboard.js";
import { set, state, subscribe, toLink } from "./store.js";
import { toggleTheme } from "./theme.js";

export function startTop(bar, applyTheme) {
  const names = element("select", { id: "namespaces", "aria-label": t("namespace"), title: t("namespace"), onchange: () => { names.blur(); choose(names); } });
  const search = element("input", { type: "search", id: "search", placeholder: t("search placeholder"), "aria-label": t("search"), autocomplete: "off", value: state.q });
  const form = element("form", { role: "search", onsubmit: (event) => { event.preventDefault(); set({ view: "search", q: search.value.trim(), id: "", pane: "panel" }, { push: true }); } }, glyph("search"), search, element("kbd", { "aria-hidden": "true" }, "/"));
  const counts = element("span.counts", { id: "counts" });
  const tongue = element("select.wide", { "aria-label": t("language"), title: t("language"), onchange: () => language.set(tongue.value) },
    [["en", "English"], ["zh", "中文"]].map(([value, label]) => element("option", { value, selected: value === language.current, lang: value }, label)));
  replace(bar, element("h1.brand", {}, "kg-memory"), names, form, counts, tongue, iconButton("link", t("copy link"), copyLink), iconButton("theme", t("light or dark"), () => toggleTheme(applyTheme)), iconButton("help", `${t("help")} (?)`, openHelp));
  subscribe(["q"], () => { search.value = state.q; });
  return { names, counts };
}

// Copy the address of this view. Browsers refuse it on pages without encryption, where the address bar has the same.
async function copyLink() {
  try {
    await navigator.clipboard.writeText(new URL(toLink(), location.href).href);
    toast(t("link copied"));
  } catch {
    toast(t("link refused"));
  }
}

function choose(names) {
  if (names.value !== "+") return set({ ns: names.value, view: "live", id: "", q: "", focus: "", at: null, believed: null, compare: false, types: [], predicates: [], speaker: "", thread: "", source: "" }, { push: true });
  names.value = state.ns;
  openDialog(t("new memory"), (form, close) => {
    const name = element("input", { type: "text", required: true, maxLength: 200, autofocus: true });
    form.append(field(t("namespace"), name), buttons(close, t("cancel"), element("button.primary", { type: "submit" }, t("open"))));
    form.addEventListener("submit", () => set({ ns: name.value.trim(), view: "live", id: "" }, { push: true }));
  });
}

export async function listNamespaces(names) {
  const { items } = await get("v1/namespaces", { limit: 1000 });
  const all = [...new Set([state.ns, ...items].filter(Boolean))];
  replace(names, all.map((name) => element("option", { value: name, selected: name === state.ns }, name)), element("option", { value: "+" }, t("new memory…")));
  return items;
}

// Ask for an API key if the server needs one; it is stored in this tab only.
let asking = null;

export function askForKey(refused) {
  asking ??= new Promise((resolve) => {
    const dialog = openDialog(t("key needed"), (form, close) => {
      const input = element("input", { type: "password", autocomplete: "off", required: true, placeholder: "kgm_…", autofocus: true });
      form.append(element("p.soft", {}, t("key intro")), refused && element("p.error", { role: "alert" }, t("key refused")) || "", field(t("key"), input), buttons(close, t("cancel"), element("button.primary", { type: "submit" }, t("open"))));
      form.addEventListener("submit", () => { secret.set(input.value.trim()); resolve(true); });
    });
    dialog.addEventListener("close", () => { resolve(false); asking = null; });
  });
  return asking;
}

