/**
 * The page's program, for any browser of the last years, without a build step. What came from a caller (prompts, paths,
 * URLs) enters the document as text and never as markup.
 */
export const SCRIPT = String.raw`
"use strict";
const by = (id) => document.getElementById(id);
const cards = new Map();
let shown = "";

function el(name, props, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(props || {})) {
    if (key === "onclick") node.addEventListener("click", value);
    else if (key in node && key !== "list") node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

const say = (text) => { by("say").textContent = text; };

async function control(path, body, method) {
  const response = await fetch("/_sandbox/" + path, {
    method: method || "POST",
    headers: { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error((answer.error && answer.error.message) || "The sandbox answered " + response.status);
  return answer;
}

function act(done, work) {
  return async () => {
    try {
      await work();
      say(done);
      await refresh();
    } catch (error) {
      say(String(error.message || error));
    }
  };
}

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

/* Players of older jobs load when asked to: each file is rendered on its first request. */
const LOADED = 8;

function media(job, at) {
  const src = "/_sandbox/jobs/" + encodeURIComponent(job.id) + "/output";
  if (job.status !== "completed") return el("span", {}, job.status === "failed" ? "no file" : "in the making");
  const label = "Output of " + job.id;
  if (job.mediaType === "image") return el("img", { src, alt: label, loading: "lazy" });
  if (job.mediaType === "audio") return el("audio", { src, controls: true, preload: "none", "aria-label": label });
  return el("video", { src, controls: true, loop: true, muted: true, preload: at < LOADED ? "metadata" : "none", "aria-label": label });
}

function card(job, at) {
  const isFinal = ["completed", "failed", "canceled", "blocked"].includes(job.status);
  const cost = isFinal ? job.finalTokenCost + " tokens charged" : job.quotedTokenCost + " tokens reserved";
  return el("li", { className: "job", id: "job-" + job.id },
    el("div", { className: "media" }, media(job, at)),
    el("div", { className: "text" },
      el("p", {}, el("span", { className: "status " + job.status }, job.status),
        job.errorCode ? " \u00b7 " + job.errorCode : ""),
      el("p", {}, job.prompt || ""),
      el("p", { className: "faint" }, (job.modelId || "") + " \u00b7 " + cost + " \u00b7 " + time(job.createdAt)),
      el("p", { className: "mono faint" }, job.id)));
}

function showJobs(jobs) {
  const list = by("jobs");
  const present = new Set();
  jobs.forEach((job, at) => {
    present.add(job.id);
    const text = JSON.stringify(job);
    let known = cards.get(job.id);
    if (!known || known.text !== text) {
      const node = card(job, at);
      if (known) known.node.replaceWith(node);
      known = { node, text };
      cards.set(job.id, known);
    }
    if (list.children[at] !== known.node) list.insertBefore(known.node, list.children[at] || null);
  });
  for (const [id, { node }] of cards) if (!present.has(id)) { node.remove(); cards.delete(id); }
  by("no-jobs").hidden = jobs.length > 0;
}

function rows(id, items, cells) {
  // Rows are made anew, so the focus is put back where it was.
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : "";
  by(id).replaceChildren(...items.map((item) => el("tr", {}, ...cells(item).map((cell) =>
    cell instanceof Node ? el("td", {}, cell)
      : typeof cell === "number" ? el("td", { className: "number" }, String(cell)) : el("td", { className: "path" }, cell || "")))));
  const again = focused && by(id).querySelector("[data-key=" + CSS.escape(focused) + "]");
  if (again) again.focus();
}

function button(key, text, onclick, label) {
  const node = el("button", { type: "button", onclick, "aria-label": label || text }, text);
  node.dataset.key = key;
  return node;
}

function showDeliveries(deliveries) {
  rows("deliveries", deliveries, (one) => [
    time(one.at), one.type, one.url, "#" + one.attempt,
    el("span", { className: one.ok ? "" : "refused" }, one.result),
    el("span", {}, button("r" + one.key, "Replay", act("Sent " + one.eventId + " again.", () =>
      control("redeliver", { jobId: one.jobId })), "Replay " + one.eventId), " ",
    button("d" + one.key, "Twice", act("Sent " + one.eventId + " twice.", () =>
      control("duplicates", { jobId: one.jobId })), "Send " + one.eventId + " twice")),
  ]);
}

function showRequests(requests) {
  rows("requests", requests, (one) => [
    time(one.at), one.method, one.path, el("span", { className: one.ok ? "" : "refused" }, one.result),
    button("c" + one.key, "Copy as curl", () => copy(one.curl, "curl command"), "Copy " + one.method + " " + one.path + " as curl"),
  ]);
}

function show(state) {
  by("url").textContent = state.url;
  by("key").textContent = state.apiKey;
  by("secret").textContent = state.webhookSecret;
  by("now").textContent = state.now + " UTC";
  by("free").textContent = state.balance.balanceTokens + " tokens free, " + state.balance.reservedTokens + " reserved";
  showJobs(state.jobs);
  showDeliveries(state.deliveries);
  showRequests(state.requests);
  rows("ledger", state.ledger, (entry) => [time(entry.at), entry.kind, entry.jobId || "", entry.tokens, entry.balance]);
}

async function refresh() {
  const state = await control("state", undefined, "GET");
  by("offline").hidden = true;
  const text = JSON.stringify(state);
  if (text === shown) return;
  shown = text;
  show(state);
}

async function follow() {
  if (!document.hidden) await refresh().catch(() => { by("offline").hidden = false; });
  setTimeout(follow, 700);
}

const advance = (seconds) => act("The clock moved on by " + seconds + " s.", () => control("advance", { ms: seconds * 1000 }))();
const failNext = () => {
  const code = by("code").value;
  return act("The next job ends as " + code + ".", () => control("outcomes",
    code === "canceled" || code === "blocked" ? { status: code } : { status: "failed", errorCode: code }))();
};

for (const node of document.querySelectorAll("[data-advance]")) node.addEventListener("click", () => advance(Number(node.dataset.advance)));
by("advance").addEventListener("submit", (event) => { event.preventDefault(); advance(Number(by("seconds").value)); });
by("fail").addEventListener("click", failNext);
by("topup").addEventListener("click", act("Topped up by 20 USD.", () => control("topup", { usd: 20 })));
by("reset").addEventListener("click", () => { if (confirm("Forget all jobs, uploads and requests?")) act("Reset.", () => control("reset"))(); });
by("copy-key").addEventListener("click", () => copy(by("key").textContent, "API key"));
by("copy-secret").addEventListener("click", () => copy(by("secret").textContent, "Signing secret"));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  const keys = { a: () => advance(10), m: () => advance(60), f: failNext };
  const action = keys[event.key];
  if (action) { event.preventDefault(); action(); }
});
follow();
`;
