import { DRAWING } from './drawing.js';

/**
 * The page's program, for any browser of the last years, without a build step. What came from a caller (prompts, paths, URLs)
 * enters the document as text and never as markup.
 */
export const SCRIPT = String.raw`
"use strict";
const by = (id) => document.getElementById(id);
const state = { facts: {}, lists: {}, filter: "", tab: "deliveries", open: new Set(), clock: { at: 0, seen: 0, pace: 0 } };
const MANY = 8;

function el(name, props, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(props || {})) {
    if (value === undefined) continue;
    if (key === "onclick") node.addEventListener("click", value);
    else if (key in node && key !== "list" && key !== "width" && key !== "height") node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null && child !== ""));
  return node;
}

function setText(id, text) {
  const node = by(id);
  if (node.textContent !== text) node.textContent = text;
}

let silence;
function say(text) {
  by("say").textContent = text;
  clearTimeout(silence);
  silence = setTimeout(() => { by("say").textContent = ""; }, 6000);
}

async function control(path, body, method) {
  const response = await fetch("/_sandbox/" + path, {
    method: method || "POST",
    headers: { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error((answer.error && answer.error.message) || "The sandbox answered " + response.status + ".");
  return answer;
}

const act = (done, work) => async () => {
  try {
    await work();
    say(done);
  } catch (error) {
    say(String(error.message || error));
  }
};

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(what + " copied.");
  } catch {
    prompt("Copy " + what + ":", text);
  }
}

function time(iso) {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(11, 19);
}

const figure = (number) => Number(number).toLocaleString("en", { maximumFractionDigits: 6 });
const count = (number, noun) => figure(number) + " " + noun + (number === 1 ? "" : "s");

${DRAWING}/* Facts */

function tick() {
  const { at, seen: since, pace } = state.clock;
  if (at === 0) return;
  const date = new Date(at + (performance.now() - since) * pace);
  setText("now", date.toISOString().slice(11, 19));
  by("now").title = date.toISOString().slice(0, 19).replace("T", " ") + " UTC";
}

function showFacts(facts) {
  setText("url", facts.url);
  setText("key", facts.apiKey);
  setText("secret", facts.webhookSecret);
  setText("free", figure(facts.balance.balanceTokens));
  setText("spent", figure(facts.balance.reservedTokens) + " reserved, " + figure(facts.balance.spentTokens) + " charged");
  setText("pace", facts.isManual ? "held" : facts.speed === 1 ? "live" : "×" + facts.speed);
  by("pace").title = facts.isManual ? "Time moves only when it is advanced." : "Sandbox time for each moment of real time.";
  by("dispatch").checked = facts.dispatch === "enabled";
  const next = facts.outcomes;
  setText("outcomes", next.length === 0 ? "No outcome set" : "Next: " + next.slice(0, 3).join(", ") + (next.length > 3 ? " and " + (next.length - 3) + " more" : ""));
  by("clear-outcomes").hidden = next.length === 0;
  setText("faults", facts.faults === 0 ? "No fault rule" : count(facts.faults, "fault rule"));
  by("clear-faults").hidden = facts.faults === 0;
  setText("example", "curl -X POST " + facts.url + "/v1/videos \\\n  -H 'Authorization: Bearer " + facts.apiKey + "' \\\n  -H 'Content-Type: application/json' \\\n  --data '{\"prompt\": \"a fox at dawn\"}'");
}

/* The stream */

function apply(change) {
  if (change.facts) state.facts = change.facts;
  for (const [name, { keys, rows }] of Object.entries(change.lists || {})) {
    const known = new Map((state.lists[name] || []).map((row) => [row.key, row]));
    for (const row of rows) known.set(row.key, row);
    state.lists[name] = keys.map((key) => known.get(key));
  }
  const { isManual, speed } = state.facts;
  state.clock = { at: change.now, seen: performance.now(), pace: isManual ? 0 : speed };
  if (change.facts) showFacts(change.facts);
  if (change.facts || (change.lists && change.lists.jobs)) showJobs();
  if (change.lists) showActivity();
  tick();
}

let stream;
function connect() {
  if (stream) stream.close();
  stream = new EventSource("/_sandbox/events" + (state.filter ? "?status=" + state.filter : ""));
  const link = (text, className) => { setText("link", text); by("link").className = "link " + className; };
  stream.onopen = () => { link("Live", "live"); by("offline").hidden = true; };
  stream.onmessage = (event) => apply(JSON.parse(event.data));
  stream.onerror = () => { link("No answer", "gone"); by("offline").hidden = false; };
}

document.addEventListener("visibilitychange", () => { if (document.hidden) stream.close(); else connect(); });

/* Controls */

const advance = (seconds) => act("The clock moved on by " + seconds + " s.", () => control("advance", { ms: seconds * 1000 }))();
const setNext = () => {
  const code = by("code").value;
  return act("The next job ends as " + code + ".", () => control("outcomes",
    code === "canceled" || code === "blocked" ? { status: code } : { status: "failed", errorCode: code }))();
};

for (const node of document.querySelectorAll("[data-advance]")) node.addEventListener("click", () => advance(Number(node.dataset.advance)));
for (const node of document.querySelectorAll("[data-copy]")) node.addEventListener("click", () => copy(by(node.dataset.copy).textContent, by("label-" + node.dataset.copy).textContent));
by("advance").addEventListener("submit", (event) => { event.preventDefault(); advance(Number(by("seconds").value)); });
by("fail").addEventListener("click", setNext);
by("topup").addEventListener("click", act("Topped up by 20 USD.", () => control("topup", { usd: 20 })));
by("copy-example").addEventListener("click", () => copy(by("example").textContent, "Command"));
by("clear-outcomes").addEventListener("click", act("The outcomes were removed.", () => control("outcomes", undefined, "DELETE")));
by("clear-faults").addEventListener("click", act("The fault rules were removed.", () => control("faults", undefined, "DELETE")));
by("dispatch").addEventListener("change", () => {
  const dispatch = by("dispatch").checked ? "enabled" : "disabled";
  act("Dispatch is " + dispatch + ".", () => control("dispatch", { dispatch }))();
});

let unsure;
by("reset").addEventListener("click", () => {
  const button = by("reset");
  const calm = () => { button.textContent = "Reset"; button.classList.remove("sure"); };
  clearTimeout(unsure);
  if (button.classList.contains("sure")) { calm(); act("Everything was reset.", () => control("reset"))(); return; }
  button.textContent = "Press again to forget everything";
  button.classList.add("sure");
  unsure = setTimeout(calm, 4000);
});

for (const name of Object.keys(ROWS)) by("tab-" + name).addEventListener("click", () => openTab(name));
by("tab-deliveries").parentElement.addEventListener("keydown", (event) => {
  const names = Object.keys(ROWS);
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  openTab(names[(names.indexOf(state.tab) + step + names.length) % names.length]);
  by("tab-" + state.tab).focus();
});

const KEYS = "gen-client-sandbox-shortcuts";
const remember = (value) => { try { return value === undefined ? localStorage.getItem(KEYS) : localStorage.setItem(KEYS, value); } catch { return null; } };
const showShortcuts = () => document.body.classList.toggle("no-keys", !by("shortcuts").checked);
by("shortcuts").checked = remember() !== "off";
by("shortcuts").addEventListener("change", () => { remember(by("shortcuts").checked ? "on" : "off"); showShortcuts(); });
document.addEventListener("keydown", (event) => {
  if (!by("shortcuts").checked || event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.closest("input, select, textarea")) return;
  const action = { a: () => advance(10), m: () => advance(60), f: setNext }[event.key];
  if (action) { event.preventDefault(); action(); }
});

showShortcuts();
openTab("deliveries");
setInterval(tick, 250);
connect();
`;
