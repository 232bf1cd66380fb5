/** The part of the page's program that draws jobs and activity. It uses the functions of the script that it is put into. */
export const DRAWING = String.raw`/* Jobs */

/* Files are rendered on their first request, so a player asks when it comes into view. */
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    entry.target.preload = "metadata";
    seen.unobserve(entry.target);
  }
}, { rootMargin: "200px" });

function media(job) {
  if (!job.isFinal) return el("div", { className: "media running" }, job.status);
  if (job.status !== "completed") return el("div", { className: "media" }, "No file");
  const src = "/_sandbox/jobs/" + encodeURIComponent(job.id) + "/output";
  const label = "Output of " + job.id;
  if (job.mediaType === "image") return el("div", { className: "media" }, el("img", { src, alt: label, loading: "lazy", width: job.width, height: job.height }));
  if (job.mediaType === "audio") return el("div", { className: "media" }, el("audio", { src, controls: true, preload: "none", "aria-label": label }));
  const video = el("video", { src, controls: true, loop: true, muted: true, playsInline: true, preload: "none", width: job.width, height: job.height, "aria-label": label });
  seen.observe(video);
  return el("div", { className: "media" }, video);
}

function promptOf(job) {
  const isOpen = state.open.has(job.id);
  const text = el("p", { className: "prompt" + (isOpen ? " open" : ""), tabIndex: isOpen ? 0 : -1 }, job.prompt || "");
  const isLong = job.prompt.length > 110 || job.prompt.split("\n").length > 3;
  if (!isLong) return [text];
  const more = el("button", { type: "button", className: "quiet", "aria-expanded": String(isOpen), onclick: () => {
    const open = !state.open.has(job.id);
    if (open) state.open.add(job.id); else state.open.delete(job.id);
    text.classList.toggle("open", open);
    text.tabIndex = open ? 0 : -1;
    more.setAttribute("aria-expanded", String(open));
    more.textContent = open ? "Show less" : "Show all";
  } }, isOpen ? "Show less" : "Show all");
  return [text, el("div", {}, more)];
}

const WARNINGS = { video_reference_fallback_omitted_clips: "Made without its clips" };

function card(job) {
  const cost = job.isFinal ? count(job.finalTokenCost, "token") + " charged" : count(job.quotedTokenCost, "token") + " reserved";
  const finish = job.isFinal ? "" : el("button", { type: "button", className: "quiet", onclick: act("Finished " + job.id + ".", () => control("jobs/" + encodeURIComponent(job.id) + "/finish", {})), "aria-label": "Finish " + job.id + " now" }, "Finish now");
  const failure = job.errorCode ? el("p", { className: "note bad" }, el("strong", {}, job.errorCode), job.errorMessage ? ": " + job.errorMessage : "") : "";
  const warnings = job.warnings.map((code) => el("p", { className: "note warn" }, (WARNINGS[code] ? WARNINGS[code] + ": " : "") + code));
  return el("li", { className: "card", id: "job-" + job.id },
    media(job),
    el("div", { className: "text" },
      el("div", { className: "line" }, el("span", { className: "status " + job.status }, job.status), finish),
      ...promptOf(job), failure, ...warnings,
      el("div", { className: "meta" },
        el("span", {}, job.modelId + (job.details ? " · " + job.details : "")),
        el("span", {}, cost + " · " + time(job.createdAt) + (job.account === "main" ? "" : " · account " + job.account)),
        el("span", { className: "mono", title: job.id }, job.id))));
}

/* Puts nodes into a list in order, moving and making no more than needed: what has the focus keeps it. */
function arrange(list, rows, make) {
  list.nodes = list.nodes || new Map();
  const present = new Set(rows.map((row) => row.key));
  for (const [key, known] of list.nodes) if (!present.has(key)) { known.node.remove(); list.nodes.delete(key); }
  rows.forEach((row, at) => {
    const text = JSON.stringify(row);
    let known = list.nodes.get(row.key);
    if (!known || known.text !== text) {
      const node = make(row);
      if (known) swap(known.node, node);
      known = { node, text };
      list.nodes.set(row.key, known);
    }
    if (list.children[at] !== known.node) list.insertBefore(known.node, list.children[at] || null);
  });
}

function swap(before, after) {
  const buttons = [...before.querySelectorAll("button")];
  const at = buttons.indexOf(document.activeElement);
  before.replaceWith(after);
  const again = at === -1 ? undefined : after.querySelectorAll("button")[at];
  if (again) again.focus();
}

const GROUPS = [["", "All"], ["running", "Running"], ["completed", "Completed"], ["ended", "Not completed"]];

function showFilters(counts) {
  const sum = (...names) => names.reduce((total, name) => total + (counts[name] || 0), 0);
  const totals = { "": counts.total, running: sum("created", "queued", "processing"), completed: sum("completed"), ended: sum("failed", "canceled", "blocked") };
  by("filters").hidden = counts.total <= MANY && state.filter === "";
  arrange(by("filters"), GROUPS.map(([key, title]) => ({ key, title, total: totals[key], pressed: state.filter === key })), ({ key, title, total, pressed }) =>
    el("button", { type: "button", "aria-pressed": String(pressed), onclick: () => filterBy(key) }, title + " ", el("span", { className: "count" }, figure(total))));
  return totals[state.filter];
}

function showJobs() {
  const { facts: { counts }, lists: { jobs } } = state;
  const total = showFilters(counts);
  arrange(by("jobs"), jobs, card);
  by("empty").hidden = counts.total > 0;
  by("none").hidden = counts.total === 0 || jobs.length > 0;
  by("more").hidden = total <= jobs.length;
  setText("more", "The newest " + jobs.length + " of " + figure(total) + " jobs.");
}

function filterBy(group) {
  state.filter = group;
  connect();
}

/* Activity */

function cells(row, parts) {
  return el("tr", {}, ...parts.map(([name, content]) => el("td", { className: name }, content === undefined ? "" : content)));
}

function jobLink(id, title) {
  if (!id) return "";
  return el("button", { type: "button", className: "quiet", title: title || id, onclick: () => find(id) }, title || id);
}

function find(id) {
  const node = by("job-" + id);
  if (!node) return say("This job is not among the jobs that are shown.");
  for (const other of document.querySelectorAll(".found")) other.classList.remove("found");
  node.classList.add("found");
  node.scrollIntoView({ block: "center" });
}

const quiet = (text, label, onclick) => el("button", { type: "button", className: "quiet", "aria-label": label, onclick }, text);

const ROWS = {
  deliveries: (one) => cells(one, [
    ["time", time(one.at)],
    ["event", one.type],
    ["job", jobLink(one.jobId, one.title)],
    ["sent", one.url],
    ["attempt", one.attempt + (one.reason === "event" ? "" : " (" + one.reason + ")")],
    ["answer" + (one.ok ? "" : " refused"), one.result],
    ["send", one.isLatest ? el("span", {},
      quiet("Once", "Send " + one.eventId + " again", act("Sent " + one.eventId + " again.", () => control("redeliver", { jobId: one.jobId }))),
      quiet("Twice", "Send " + one.eventId + " twice", act("Sent " + one.eventId + " twice.", () => control("duplicates", { jobId: one.jobId })))) : ""],
  ]),
  requests: (one) => cells(one, [
    ["time", time(one.at)],
    ["method", one.method],
    ["path", one.path],
    ["answer" + (one.ok ? "" : " refused"), one.result],
    ["repeat", quiet("Copy as curl", "Copy " + one.method + " " + one.path + " as curl", () => copy(one.curl, "curl command"))],
  ]),
  ledger: (one) => cells(one, [
    ["time", time(one.at)],
    ["entry", one.type],
    ["job", jobLink(one.jobId)],
    ["tokens", figure(one.tokens)],
    ["balance", figure(one.balanceTokens)],
  ]),
};

function showActivity() {
  for (const name of Object.keys(ROWS)) {
    const rows = state.lists[name];
    by("tab-" + name).querySelector(".count").textContent = rows.length >= 100 ? "100+" : String(rows.length);
    if (state.tab === name) arrange(by(name), rows, ROWS[name]);
  }
}

function openTab(name) {
  state.tab = name;
  for (const other of Object.keys(ROWS)) {
    by("tab-" + other).setAttribute("aria-selected", String(other === name));
    by("tab-" + other).tabIndex = other === name ? 0 : -1;
    by("panel-" + other).hidden = other !== name;
  }
  if (state.lists[name]) showActivity();
}

`;
