"use strict";
(() => {
// Everything here only adds to a page that reads without it. Text from the data is only ever set as
// text: no markup is made from strings, and the page's policy would refuse it.

const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
const PER_PAGE = 50;
const format = new Intl.NumberFormat("en-US");
const count = (n) => format.format(n);
const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

function make(tag, given = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((c) => c != null));
  return element;
}

// Unseen and reordering characters are shown by code point, as everywhere in the report.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}]/gu;
const shown = (text, keep = "") => text.replace(UNSEEN, (c) =>
  "\u200c\u200d".includes(c) || keep.includes(c) ? c
    : `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
const named = (text) => make("bdi", { class: "name", text: shown(text) });

// --- copying ------------------------------------------------------------------------------------

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* no clipboard here, or no leave to use it: the older way */ }
  const area = make("textarea", { class: "unseen", "aria-hidden": "true", tabindex: "-1" });
  area.value = text;
  const back = document.activeElement;
  const into = $("dialog[open]") ?? document.body;
  into.append(area);
  area.select();
  let done = false;
  try { done = document.execCommand("copy"); } catch { done = false; }
  area.remove();
  back?.focus?.({ preventScroll: true });
  return done;
}

const teller = make("div", { class: "unseen", role: "status", "aria-live": "polite" });
document.body.append(teller);
function tell(text) {
  teller.textContent = "";
  requestAnimationFrame(() => { teller.textContent = text; });
}

function flash(button, text) {
  button.dataset.label ??= button.textContent;
  button.textContent = text;
  tell(text);
  clearTimeout(Number(button.dataset.timer));
  button.dataset.timer = setTimeout(() => { button.textContent = button.dataset.label; }, 2000);
}

for (const button of $$("button[data-copies]")) {
  const box = document.getElementById(button.dataset.copies);
  button.addEventListener("click", async () => {
    flash(button, (await copy(box.textContent)) ? button.dataset.said : "Select and copy by hand");
  });
}
for (const group of $$(".copies")) group.hidden = false;

// --- tables -------------------------------------------------------------------------------------

function numberOf(cell) {
  if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
  const text = ($(".open, span", cell) ?? cell.firstChild ?? cell).textContent.replace(/[,≥%\s]/gu, "").replace("−", "-");
  return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
}

function sortable(table) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const given = [...body.rows];
  if (given.length < 3 || given.some((r) => r.cells.length !== heads.length)) return;
  const arrow = (head, to) => {
    for (const other of heads) {
      other.removeAttribute("aria-sort");
      $(".arrow", other).textContent = "";
    }
    if (to) head.setAttribute("aria-sort", to);
    $(".arrow", head).textContent = to === "ascending" ? " ▲" : to === "descending" ? " ▼" : "";
  };
  heads.forEach((head, column) => {
    if (!head.textContent.trim()) { head.append(make("span", { class: "arrow" })); return; }
    const button = make("button", { type: "button", class: "sort" }, ...head.childNodes);
    button.append(make("span", { class: "arrow", "aria-hidden": "true" }));
    head.append(button);
    button.addEventListener("click", () => {
      const was = head.getAttribute("aria-sort");
      const numeric = given.some((r) => numberOf(r.cells[column]) !== null);
      const first = numeric ? "descending" : "ascending";
      const to = !was ? first : was === first ? (numeric ? "ascending" : "descending") : null;
      const rows = [...given];
      if (to) {
        const sign = to === "ascending" ? 1 : -1;
        const collator = new Intl.Collator("en", { numeric: true });
        rows.sort((a, b) => {
          const [x, y] = [a.cells[column], b.cells[column]];
          const [p, q] = [numberOf(x), numberOf(y)];
          if (numeric) return p === null ? (q === null ? 0 : 1) : q === null ? -1 : sign * (p - q);
          return sign * collator.compare(x.textContent, y.textContent);
        });
      }
      body.append(...rows);
      arrow(head, to);
      const name = button.firstChild?.textContent ?? "";
      tell(to ? `Sorted by ${name}, ${to}` : "In the order of the report");
    });
  });
}
for (const table of $$("main table")) sortable(table);

const LONG = 16, KEPT = 10;
for (const table of $$("main .block table")) {
  const rows = table.tBodies[0].rows.length;
  if (rows <= LONG) continue;
  table.classList.add("folded");
  const button = make("button", { type: "button", class: "unfold", "aria-expanded": "false" });
  const label = () => {
    const folded = table.classList.contains("folded");
    button.textContent = folded ? `Show all ${count(rows)} rows` : `Show the first ${KEPT} rows`;
    button.setAttribute("aria-expanded", String(!folded));
  };
  button.addEventListener("click", () => { table.classList.toggle("folded"); label(); });
  label();
  table.closest(".scroll").after(button);
}

// Only what really scrolls takes the keyboard's focus and says so.
const boxes = $$(".scroll");
const sized = (box) => {
  const wide = box.scrollWidth > box.clientWidth + 1;
  box.classList.toggle("wide", wide);
  if (wide) { box.tabIndex = 0; box.setAttribute("role", "region"); }
  else { box.removeAttribute("tabindex"); box.setAttribute("role", "group"); }
};
const watch = new ResizeObserver((entries) => entries.forEach((e) => sized(e.target)));
boxes.forEach((box) => { sized(box); watch.observe(box); });

// --- files --------------------------------------------------------------------------------------

// A text that a spreadsheet would run as a formula is kept a text, as in voirdire's own CSV files.
const field = (value) => {
  const text = String(value ?? "");
  const safe = /^[=+\-@\t\r']/.test(text) && (typeof value !== "number") ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
const csv = (rows) => rows.map((r) => r.map(field).join(",") + "\n").join("");

function download(name, text, type = "text/csv") {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = make("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

for (const table of $$("table[data-csv]")) {
  const read = (row) => [...row.cells].map((c) =>
    c.tagName === "TD" && !c.className ? Number(c.textContent) : c.textContent);
  const heads = [...table.tHead.rows[0].cells].map((c) => ($("button", c)?.firstChild ?? c).textContent);
  const rows = [...table.tBodies[0].rows];
  table.closest(".scroll").after(make("button", {
    type: "button", class: "csv", text: "Save as CSV",
    onclick: () => download(`${table.dataset.csv}.csv`, csv([heads, ...rows.map(read)])),
  }));
}

// --- printing -----------------------------------------------------------------------------------

let opened = [];
addEventListener("beforeprint", () => {
  opened = $$("details:not([open])");
  for (const one of opened) one.open = true;
});
addEventListener("afterprint", () => { for (const one of opened) one.open = false; opened = []; });

// A finding that is linked to is shown with its evidence.
function openTarget() {
  const target = location.hash.startsWith("#finding-") && document.getElementById(location.hash.slice(1));
  const inside = target && $("details.evidence", target);
  if (inside) inside.open = true;
}
addEventListener("hashchange", openTarget);
openTarget();

// Which section one is in.
if ("IntersectionObserver" in window) {
  const links = new Map($$("nav a").map((a) => [a.hash.slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "0px 0px -75% 0px" });
  for (const id of links.keys()) {
    const heading = document.getElementById(id);
    if (heading) seen.observe(heading);
  }
}

// --- the responses behind a number --------------------------------------------------------------

const given = $("#selections");
if (!given) return;
const page = JSON.parse(given.textContent);
const part = (i) => page.strings[i];
const words = (parts) => parts.map((i) => { const p = part(i); return Array.isArray(p) ? p[0] : p; });

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
const VALUE = new Uint8Array(128);
[...DIGITS].forEach((d, i) => { VALUE[d.charCodeAt(0)] = i; });

function unpacked(text, n) {
  const width = n ? text.length / n : 1;
  const codes = width > 1 ? new Uint32Array(n) : new Uint8Array(n);
  for (let i = 0, at = 0; i < n; i++) {
    let code = 0;
    for (let j = 0; j < width; j++) code = code * 64 + VALUE[text.charCodeAt(at++)];
    codes[i] = code;
  }
  return codes;
}

function whole(names) {
  let last = "";
  return names.map((name) => (last = last.slice(0, VALUE[name.charCodeAt(0)]) + name.slice(1)));
}

let held = null;   // the responses, once they are read
function read(data) {
  const ids = whole(data.ids), n = ids.length;
  const made = {
    ...data, ids, n, k: data.classes.length,
    states: data.states.map((s) => unpacked(s, n)),
    tags: data.tags.map(([name, values, codes]) => ({ name, values, codes: unpacked(codes, n) })),
    clusters: data.clusters && whole(data.clusters),
    cluster: data.cluster && unpacked(data.cluster, n),
    votes: data.votes?.map((v) => v.split(".")),
    phrased: data.phrased?.map((columns) => columns.map((c) => unpacked(c, n))),
    steps: data.steps?.map(([name, columns]) => [name, columns.map((c) => unpacked(c, n))]),
    texts: data.texts ?? [],
  };
  if (data.verdicts) {
    const v = data.verdicts, width = v.width;
    const starts = [];
    v.checklists.reduce((sum, lines) => { starts.push(sum); return sum + lines.length; }, 0);
    made.verdicts = {
      ...v, starts, question: unpacked(v.question, n),
      given: v.given.map((g) => unpacked(g, n * width)),
    };
    made.totals = made.verdicts.given.map((g) => {
      const totals = new Int32Array(n);
      for (let i = 0; i < n; i++) {
        let met = 0, lines = 0;
        for (let j = i * width; j < (i + 1) * width; j++) {
          if (g[j] === 2) { met = -1e9; lines = 1; }
          if (g[j] < 2) { lines += 1; met += g[j]; }
        }
        totals[i] = lines && met >= 0 ? met : -1;
      }
      return totals;
    });
    made.lines = new Int32Array(n);
    for (let i = 0; i < n; i++) made.lines[i] = v.checklists[made.verdicts.question[i]]?.length ?? 0;
  }
  return made;
}

// Conditions, as in voirdire/selections.py: each gives how often response i counts.
const oneOf = (codes) => { const set = new Set(codes); return (c) => set.has(c); };
const CLASSES = {
  of: (g, i) => { const s = held.states[g][i]; return s < held.k ? s : -1; },
  majority(voters, i) {
    const seen = new Map();
    for (const v of voters) {
      const c = CLASSES.of(v, i);
      if (c < 0) continue;
      const times = (seen.get(c) ?? 0) + 1;
      if (2 * times > voters.length) return c;
      seen.set(c, times);
    }
    return -1;
  },
};
const KINDS = {
  in: (g, codes) => { const is = oneOf(codes), s = held.states[g]; return (i) => is(s[i]); },
  tag: (t, value) => { const c = held.tags[t].codes; return (i) => c[i] === value; },
  differ: (g, h) => (i) => {
    const [a, b] = [CLASSES.of(g, i), CLASSES.of(h, i)];
    return a >= 0 && b >= 0 && a !== b;
  },
  solo: (g, others) => (i) => {
    const mine = CLASSES.of(g, i);
    let there = false;
    for (const h of others) {
      const c = CLASSES.of(h, i);
      if (c === mine) return false;
      there ||= c >= 0;
    }
    return mine >= 0 && there;
  },
  against: (g, voters) => (i) => {
    const [mine, most] = [CLASSES.of(g, i), CLASSES.majority(voters, i)];
    return mine >= 0 && most >= 0 && mine !== most;
  },
  verdict: (g, voters) => (i) => CLASSES.of(g, i) >= 0 && CLASSES.majority(voters, i) >= 0,
  seen: (g, voters) => {
    const absent = held.k + held.outcomes.indexOf("not_there");
    const who = g < 0 ? voters : [...voters, g];
    return (i) => who.some((v) => held.states[v][i] !== absent);
  },
  split: (g, voters) => {
    const seen = KINDS.seen(g, voters);
    return (i) => seen(i) && CLASSES.majority(voters, i) < 0;
  },
  pair: (g, h, line, place, codes) => {
    const { width, given: all, question, starts, checklists } = held.verdicts;
    const is = oneOf(codes), said = all[g], truth = all[h];
    return (i) => {
      let times = 0;
      for (let j = 0; j < width; j++) {
        if (place >= 0 && j !== place) continue;
        if (line >= 0 && (j >= checklists[question[i]].length || starts[question[i]] + j !== line)) continue;
        const [a, b] = [said[i * width + j], truth[i * width + j]];
        if (a < 2 && b < 2 && is(2 * b + a)) times += 1;
      }
      return times;
    };
  },
  met: (g, least, most) => (i) => {
    const total = held.totals[g][i];
    return total >= 0 && total >= (least < 0 ? held.lines[i] : least)
      && total <= (most < 0 ? held.lines[i] : most);
  },
  gate: (g, h, cut, codes) => {
    const is = oneOf(codes);
    return (i) => {
      const [a, b] = [held.totals[g][i], held.totals[h][i]];
      return a >= 0 && b >= 0 && is(2 * (b >= cut) + (a >= cut));
    };
  },
  flip: (g, codes, cut, differ) => {
    const columns = held.phrased[g].filter((c) => c.some((x) => x !== 255));
    const is = oneOf(codes);
    const value = (c) => (codes.length ? is(c) : cut ? c >= cut : c);
    return (i) => {
      if (columns.length < 2 || columns.some((c) => c[i] === 255)) return false;
      const said = columns.map((c) => c[i]).filter((c) => c < 254).map(value);
      return said.length > 1 && (!differ || said.some((v) => v !== said[0]));
    };
  },
  step: (s, g, codes) => {
    const is = oneOf(codes.map((c) => (c < 0 ? 254 : c))), column = held.steps[s][1][g];
    return (i) => is(column[i]);
  },
};

function selected(conditions) {
  const tests = conditions.map(([kind, ...rest]) => KINDS[kind](...rest));
  const rows = [], times = [];
  let total = 0;
  for (let i = 0; i < held.n; i++) {
    let n = 1;
    for (const test of tests) { n *= Number(test(i)); if (!n) break; }
    if (n) { rows.push(i); times.push(n); total += n; }
  }
  return { rows, times, total };
}

// The address of a selection: the statistic and its key, not a place that another report would move.
const address = (place) => page.selections[place][3].map((i) => {
  const p = part(i); return encodeURIComponent(Array.isArray(p) ? p[0] : p);
}).join("/").replace(/\/+$/, "");
const PLACES = new Map(page.selections.map((_, place) => [address(place), place]));

// --- the sheet ----------------------------------------------------------------------------------

let state = null, back = null;
const title = make("h2", { id: "sheet-title" });
const tally = make("p", { class: "tally", role: "status" });
const search = make("input", { type: "search", id: "sheet-search", autocomplete: "off", spellcheck: "false" });
const searchLabel = make("label", { for: "sheet-search", text: "Search" });
const clear = make("button", { type: "button", text: "Clear filters", hidden: true });
const table = make("table", { class: "responses", "aria-labelledby": "sheet-title" });
const scroll = make("div", { class: "rows", tabindex: "0", role: "region", "aria-labelledby": "sheet-title" }, table);
const earlier = make("button", { type: "button", text: "← Earlier" });
const later = make("button", { type: "button", text: "Later →" });
const place = make("span", { class: "place" });
const link = make("button", { type: "button", text: "Copy link" });
const save = make("button", { type: "button", text: "Save as CSV" });
const close = make("button", { type: "button", class: "close", "aria-label": "Close", text: "×" });
const tools = make("div", { class: "tools" }, searchLabel, search, clear, save, link);
const foot = make("div", { class: "pager" }, earlier, place, later);
const file = make("input", { type: "file", id: "sheet-file", accept: ".json,application/json" });
const problem = make("p", { class: "problem", role: "alert" });
const ask = make("div", { class: "ask", hidden: true });
const sheet = make("dialog", { class: "sheet", "aria-labelledby": "sheet-title" },
  make("div", { class: "top" }, title, close), tally, ask, tools, scroll, foot);
document.body.append(sheet);

// An address may hold what no text is encoded as; then it stands as it is.
const decoded = (text, decode) => { try { return decode(text); } catch { return text; } };
const stem = decoded(location.pathname.split("/").pop() || "audit.html", decodeURIComponent).replace(/\.html?$/i, "");
const fileName = stem + page.suffix;
ask.append(
  make("p", {}, "The responses of this audit are many, so they are kept in the file ",
    named(fileName), " beside this page. A page may not read files by itself: choose it here."),
  make("label", { for: "sheet-file", text: "Open the responses" }), file, problem);

file.addEventListener("change", async () => {
  problem.textContent = "";
  const chosen = file.files[0];
  if (!chosen) return;
  try {
    const content = JSON.parse(await chosen.text());
    if (content?.voirdire !== "responses") throw new Error(`${chosen.name} holds no responses of voirdire.`);
    if (content.mark !== page.mark) {
      throw new Error(`${chosen.name} belongs to another audit. Choose the file that was written with this page.`);
    }
    held = read(content.data);
    show();
  } catch (error) {
    problem.textContent = error instanceof SyntaxError ? `${chosen.name} is no JSON file.` : error.message;
  }
  file.value = "";
});

function ready() {
  if (held) return true;
  const inside = $("#responses");
  if (inside) { held = read(JSON.parse(inside.textContent)); return true; }
  return false;
}

function open(at, filters = {}, from = null) {
  if (!sheet.open) back = from ?? document.activeElement;
  state = { at, q: filters.q ?? "", wanted: filters.wanted ?? {}, page: 0, row: 0, chosen: null };
  title.replaceChildren(...page.selections[at][0].map((i) => {
    const p = part(i); return Array.isArray(p) ? named(p[0]) : document.createTextNode(p);
  }));
  if (!sheet.open) sheet.showModal();
  show();
}

function show() {
  const there = ready();
  ask.hidden = there;
  for (const one of [tools, scroll, foot]) one.hidden = !there;
  if (!there) {
    tally.textContent = `${plural(page.responses, "response")} in all.`;
    file.focus();
    return;
  }
  const [conditions, within] = page.selections[state.at].slice(1, 3)
    .map((places) => places.map((c) => page.conditions[c]));
  state.chosen = selected(conditions);
  state.within = within.length ? selected(within).total : 0;
  state.columns = columns(conditions);
  search.value = state.q;
  searchLabel.textContent = held.texts.length ? "Search ids and texts" : "Search ids";
  head();
  filter();
  remember();
  ($("button.id", table) ?? scroll).focus({ preventScroll: true });
}

// Columns: graders of the selection first, then the others, then tags and the cluster.
function columns(conditions) {
  const named_ = [...new Set(conditions.flatMap(([kind, g, h]) =>
    ({ tag: [], step: [h] })[kind] ?? (["differ", "pair", "gate"].includes(kind) ? [h, g] : [g])))]
    .filter((g) => g >= 0);
  const rest = held.graders.map((_, g) => g).filter((g) => !named_.includes(g));
  return [
    ...[...named_, ...rest].map((g) => ({
      key: `g${g}`, grader: g, title: held.graders[g], main: named_.includes(g),
      code: held.totals ? (i) => held.totals[g][i] + 1 : (i) => held.states[g][i],
      say: (code) => (held.totals
        ? (code ? `${code - 1} met` : "not whole")
        : code < held.k ? held.classes[code] : outcome(code)),
    })),
    ...held.tags.map((tag, t) => ({
      key: `t${t}`, title: tag.name, code: (i) => tag.codes[i], say: (code) => tag.values[code] ?? "–",
    })),
  ];
}
const outcome = (code) => {
  const name = held.outcomes[code - held.k];
  return { not_there: "not asked", no_majority: "no majority" }[name] ?? name.replace("_", " ");
};

function head() {
  const row = make("tr", {}, make("th", { scope: "col", text: "response" }));
  const snippet = held.texts[0];
  if (snippet) row.append(make("th", { scope: "col" }, named(snippet[0])));
  for (const column of state.columns) {
    const codes = new Map();
    for (const i of state.chosen.rows) {
      const code = column.code(i);
      codes.set(code, (codes.get(code) ?? 0) + 1);
    }
    const pick = make("select", { "aria-label": `Only where ${shown(column.title)} is`, "data-key": column.key },
      make("option", { value: "", text: "all" }));
    for (const [code, n] of [...codes].sort((a, b) => a[0] - b[0])) {
      pick.append(make("option", { value: String(code), text: `${shown(column.say(code))} (${count(n)})` }));
    }
    pick.value = state.wanted[column.key] ?? "";
    if (codes.size < 2 && !pick.value) pick.disabled = true;
    pick.addEventListener("change", () => {
      if (pick.value) state.wanted[column.key] = pick.value; else delete state.wanted[column.key];
      filter();
      remember();
    });
    row.append(make("th", { scope: "col", class: column.main ? "main" : null }, named(column.title), pick));
  }
  if (held.cluster) row.append(make("th", { scope: "col", text: "cluster" }));
  table.replaceChildren(make("thead", {}, row), make("tbody"));
}

const conditionsCountVerdicts = () =>
  page.selections[state.at][1].some((c) => page.conditions[c][0] === "pair");

function filter() {
  const tests = state.columns.filter((c) => state.wanted[c.key])
    .map((c) => { const code = Number(state.wanted[c.key]); return (i) => c.code(i) === code; });
  if (state.q) {
    const sought = new RegExp(state.q.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "iu");
    tests.push((i) => sought.test(held.ids[i])
      || (held.cluster && sought.test(held.clusters[held.cluster[i]]))
      || held.texts.some(([, column]) => sought.test(column[i])));
  }
  state.rows = [];
  state.times = 0;
  state.chosen.rows.forEach((i, at) => {
    if (tests.every((test) => test(i))) { state.rows.push(i); state.times += state.chosen.times[at]; }
  });
  state.page = 0;
  state.row = 0;
  clear.hidden = !tests.length;
  const all = state.chosen.rows.length;
  const of = (n, noun) => (state.within ? `${count(n)} of ${plural(state.within, noun)}` : plural(n, noun));
  let said = conditionsCountVerdicts()
    ? `${of(state.chosen.total, "verdict")}, in ${plural(all, "response")}` : of(all, "response");
  if (held.frequency && held.weights) {
    const sum = state.chosen.rows.reduce((a, i) => a + held.weights[i], 0);
    said += `, which stand for ${count(sum)}`;
  }
  if (tests.length) said = `${count(state.rows.length)} of these after filters: ${said}`;
  tally.textContent = `${said}.`;
  tally.dataset.rows = String(state.rows.length);
  tally.dataset.total = String(state.chosen.total);
  draw();
}

function chip(column, code) {
  const label = named(column.say(code));
  if (column.grader === undefined) return label;
  if (held.totals) return code ? document.createTextNode(String(code - 1)) : make("i", { text: "–" });
  if (code >= held.k) return make("i", { text: outcome(code) });
  const step = code < held.scale
    ? (held.scale < 2 ? 10 : Math.round((code / (held.scale - 1)) * 10)) : -1;
  const mark = make("span", { class: step < 0 ? "swatch off" : "swatch", "aria-hidden": "true" });
  if (step >= 0) mark.style.background = `var(--vd-ramp-${step}, var(--soft))`;
  return make("span", { class: "chip" }, mark, label);
}

function draw() {
  const pages = Math.max(1, Math.ceil(state.rows.length / PER_PAGE));
  const from = state.page * PER_PAGE;
  const rows = state.rows.slice(from, from + PER_PAGE);
  const body = table.tBodies[0];
  body.replaceChildren(...rows.map((i, at) => {
    const toggle = make("button", { type: "button", class: "id", "aria-expanded": "false" }, named(held.ids[i]));
    const row = make("tr", { "data-i": i }, make("th", { scope: "row" }, toggle));
    toggle.addEventListener("click", () => { state.row = at; expand(row, toggle, i); });
    toggle.addEventListener("focus", () => { state.row = at; });
    if (held.texts[0]) {
      row.append(make("td", { class: "snippet" }, make("bdi", { text: shown(held.texts[0][1][i].slice(0, 140)) })));
    }
    for (const column of state.columns) {
      row.append(make("td", { class: column.main ? "main" : null }, chip(column, column.code(i))));
    }
    if (held.cluster) row.append(make("td", {}, named(held.clusters[held.cluster[i]])));
    return row;
  }));
  if (!rows.length) {
    body.append(make("tr", {}, make("td", { colspan: String(state.columns.length + 3), text: "No response is left. Clear the filters." })));
  }
  place.textContent = rows.length
    ? `${count(from + 1)} to ${count(from + rows.length)} of ${count(state.rows.length)}` : "none";
  earlier.disabled = state.page === 0;
  later.disabled = state.page >= pages - 1;
  foot.hidden = pages < 2;
  table.setAttribute("aria-rowcount", String(state.rows.length + 1));
  scroll.scrollTop = 0;
}

function expand(row, toggle, i) {
  if (toggle.getAttribute("aria-expanded") === "true") {
    row.nextElementSibling.remove();
    toggle.setAttribute("aria-expanded", "false");
    return;
  }
  toggle.setAttribute("aria-expanded", "true");
  const cell = make("td", { colspan: String(row.cells.length) });
  for (const [name, column] of held.texts) {
    cell.append(make("h3", {}, named(name)),
      make("div", { class: "words", dir: "auto", text: shown(column[i], "\n\t") }));
  }
  if (held.verdicts) cell.append(verdictsOf(i));
  const list = make("dl");
  const say = (what, text) => list.append(make("dt", {}, ...what), make("dd", {}, named(text)));
  held.votes?.forEach((votes, g) => {
    const size = held.k + held.outcomes.length > 64 ? 2 : 1;
    if (votes[i].length <= size) return;
    const each = [...unpacked(votes[i], votes[i].length / size)];
    say(["votes of ", named(held.graders[g])], each.map((c) => (c < held.k ? held.classes[c] : outcome(c))).join(", "));
  });
  held.phrased?.forEach((of, g) => {
    if (!of.some((c) => c[i] !== 255)) return;
    const word = (c) => (c === 254 ? "not read" : held.totals ? `${c} met` : held.classes[c]);
    say([named(held.graders[g]), " under each phrasing"],
      of.map((c, p) => (c[i] === 255 ? null : `${held.phrasings[p]}: ${word(c[i])}`)).filter(Boolean).join("; "));
  });
  held.steps?.length && held.graders.forEach((grader, g) => {
    say([named(grader), " after each step"],
      held.steps.map(([name, of]) => `${name}: ${of[g][i] === 254 ? "no label" : held.classes[of[g][i]]}`).join("; "));
  });
  if (list.childElementCount) cell.append(list);
  if (!cell.childElementCount) {
    cell.append(make("p", { text: "Nothing more is known of this response. Its text is shown where the audit was made with --text COLUMN." }));
  }
  row.after(make("tr", { class: "more" }, cell));
}

function verdictsOf(i) {
  const { width, given: all, question, checklists, texts } = held.verdicts;
  const gold = held.graders.indexOf(held.gold);
  const order = [...held.graders.keys()].sort((a, b) => (b === gold) - (a === gold));
  const body = make("tbody");
  checklists[question[i]].forEach((line, j) => {
    const row = make("tr", {}, make("th", { scope: "row" }, named(line), ...(texts[line] ? [" ", make("bdi", { text: shown(texts[line]) })] : [])));
    for (const g of order) {
      const v = all[g][i * width + j], truth = gold < 0 ? 3 : all[gold][i * width + j];
      const off = g !== gold && v < 2 && truth < 2 && v !== truth;
      row.append(make("td", { class: off ? "off" : null, text: (["no", "yes", "–", ""][v]) + (off ? " ≠" : "") }));
    }
    body.append(row);
  });
  return make("table", { class: "lines" },
    make("thead", {}, make("tr", {}, make("th", { scope: "col", text: "line" }),
      ...order.map((g) => make("th", { scope: "col" }, named(held.graders[g]))))), body);
}

// --- the sheet's keyboard, address and files ----------------------------------------------------

function turn(by) {
  const pages = Math.ceil(state.rows.length / PER_PAGE);
  const to = Math.min(Math.max(state.page + by, 0), Math.max(pages - 1, 0));
  if (to === state.page) return false;
  state.page = to;
  draw();
  tell(place.textContent);
  return true;
}
earlier.addEventListener("click", () => { turn(-1); if (earlier.disabled) later.focus(); });
later.addEventListener("click", () => { turn(1); if (later.disabled) earlier.focus(); });
clear.addEventListener("click", () => {
  state.q = search.value = "";
  state.wanted = {};
  for (const pick of $$("select", table)) pick.value = "";
  filter();
  remember();
  search.focus();
});
let waiting = 0;
search.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => { state.q = search.value.trim(); filter(); remember(); }, held.n > 20000 ? 200 : 60);
});

scroll.addEventListener("keydown", (event) => {
  if (event.target.tagName === "SELECT" || event.altKey || event.ctrlKey || event.metaKey) return;
  const buttons = $$("button.id", table);
  const at = buttons.indexOf(document.activeElement);
  const to = (i) => { buttons[i]?.focus(); buttons[i]?.scrollIntoView({ block: "nearest" }); };
  switch (event.key) {
    case "ArrowDown":
      if (at < 0) to(0);
      else if (at < buttons.length - 1) to(at + 1);
      else if (turn(1)) $("button.id", table)?.focus();
      break;
    case "ArrowUp":
      if (at > 0) to(at - 1);
      else if (turn(-1)) $$("button.id", table).at(-1)?.focus();
      break;
    case "PageDown": if (turn(1)) $("button.id", table)?.focus(); break;
    case "PageUp": if (turn(-1)) $("button.id", table)?.focus(); break;
    case "Home": to(0); break;
    case "End": to(buttons.length - 1); break;
    case "/": search.focus(); break;
    default: return;
  }
  event.preventDefault();
});
search.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") { event.preventDefault(); $("button.id", table)?.focus(); }
});

function hash() {
  const filters = new URLSearchParams();
  if (state.q) filters.set("q", state.q);
  for (const [key, value] of Object.entries(state.wanted)) filters.set(key, value);
  const more = filters.toString();
  return `#responses=${address(state.at)}${more ? `&${more}` : ""}`;
}
const remember = () => history.replaceState(null, "", hash());

link.addEventListener("click", async () => {
  flash(link, (await copy(location.href.replace(/#.*$/, "") + hash())) ? "Link copied" : "Copy the address by hand");
});

save.addEventListener("click", () => {
  const unread = held.graders.map((_, g) => !held.totals && held.states[g].some((s) => s >= held.k));
  const heads = ["response"];
  if (held.cluster) heads.push("cluster");
  held.graders.forEach((g, at) => { heads.push(g); if (unread[at]) heads.push(`${g} outcome`); });
  heads.push(...held.tags.map((t) => t.name), ...held.texts.map(([name]) => name));
  const rows = state.rows.map((i) => {
    const row = [held.ids[i]];
    if (held.cluster) row.push(held.clusters[held.cluster[i]]);
    held.graders.forEach((_, g) => {
      const s = held.states[g][i];
      if (held.totals) row.push(held.totals[g][i] < 0 ? "" : held.totals[g][i]);
      else row.push(s < held.k ? held.classes[s] : "");
      if (unread[g]) row.push(s < held.k ? "label" : held.outcomes[s - held.k]);
    });
    for (const tag of held.tags) row.push(tag.values[tag.codes[i]] ?? "");
    for (const [, column] of held.texts) row.push(column[i]);
    return row;
  });
  const name = words(page.selections[state.at][3]).filter(Boolean).join("-").replace(/[^\p{L}\p{N}_.-]+/gu, "_").slice(0, 80);
  download(`${name || "responses"}.csv`, csv([heads, ...rows]));
  tell(`${plural(rows.length, "response")} saved`);
});

close.addEventListener("click", () => sheet.close());
sheet.addEventListener("click", (event) => { if (event.target === sheet) sheet.close(); });
sheet.addEventListener("close", () => {
  history.replaceState(null, "", location.pathname + location.search);
  back?.focus?.();
  back = null;
});

for (const cell of $$("[data-s]")) {
  const value = $("span", cell);
  if (!value) continue;
  const at = Number(cell.dataset.s);
  const button = make("button", {
    type: "button", class: "open", "aria-haspopup": "dialog",
    title: "Show the responses behind this number",
  }, ...value.childNodes);
  value.replaceWith(button);
  button.addEventListener("click", () => open(at, {}, button));
}

function fromAddress() {
  if (!location.hash.startsWith("#responses=")) return;
  const [name, ...more] = location.hash.slice("#responses=".length).split("&");
  const at = PLACES.get(name) ?? PLACES.get(decoded(name, decodeURI));
  if (at === undefined) { tell("This report has no such selection."); return; }
  const wanted = Object.fromEntries(new URLSearchParams(more.join("&")));
  const q = wanted.q ?? "";
  delete wanted.q;
  open(at, { q, wanted });
}
addEventListener("hashchange", fromAddress);
fromAddress();
})();
