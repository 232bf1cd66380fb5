import { JOB_ERRORS } from '../../../errors/codes.js';
import { SCRIPT } from './script.js';
import { STYLE } from './style.js';

/**
 * The page at `/`: the sandbox's jobs, deliveries, requests and money as they change, and buttons that change them. It is one
 * document that asks only the control surface, runs only its own script, and cannot be framed.
 */
export function renderPage(): Response {
  const nonce = crypto.randomUUID();
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "media-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  };
  return new Response(document(nonce), { headers });
}

function document(nonce: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>gen-client sandbox</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${STYLE}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the jobs</a>
${HEADER}
<div class="page">
${MAIN}
${ASIDE}
</div>
<p id="say" role="status"></p>
<script nonce="${nonce}">${SCRIPT}</script>
</body>
</html>
`;
}

const OUTCOMES = [...Object.keys(JOB_ERRORS), 'canceled', 'blocked']
  .map((code) => `<option${code === 'generation_failed' ? ' selected' : ''}>${code}</option>`)
  .join('');

const HEADER = `<header>
<div class="brand"><h1>gen-client sandbox</h1><span id="link" class="link">Connecting</span></div>
<div class="group" role="group" aria-labelledby="clock-label">
<div class="time"><span class="label" id="clock-label">Clock</span><time id="now" class="clock">--:--:--</time><span id="pace" class="tag"></span></div>
<button type="button" data-advance="10" aria-keyshortcuts="a">+10 s <kbd>A</kbd></button>
<button type="button" data-advance="60" aria-keyshortcuts="m">+1 min <kbd>M</kbd></button>
<form id="advance"><label class="label" for="seconds">Seconds</label>
<input type="number" id="seconds" min="0.001" max="3155760000" step="any" value="600" required><button>Advance</button></form>
</div>
<div class="group" role="group" aria-labelledby="next-label">
<span class="label" id="next-label">Next job</span>
<select id="code" aria-label="How the next job ends">${OUTCOMES}</select>
<button type="button" id="fail" aria-keyshortcuts="f">Set <kbd>F</kbd></button>
</div>
<nav aria-label="Sections"><a href="#jobs-title">Jobs</a><a href="#activity-title">Activity</a><a href="#access-title">Access</a></nav>
</header>`;

const MAIN = `<main id="main" tabindex="-1">
<p id="offline" class="banner" role="alert" hidden>The sandbox does not answer. Is it still running?</p>
<section aria-labelledby="jobs-title">
<div class="head"><h2 id="jobs-title">Jobs</h2>
<div id="filters" class="filters" role="group" aria-label="Jobs to show" hidden></div></div>
<div id="empty" class="empty">
<p>No job yet. Create one with this command, or from your program with the base URL and the key.</p>
<pre id="example" tabindex="0"></pre><button type="button" id="copy-example">Copy command</button>
</div>
<p id="none" class="empty" hidden>No job of this kind.</p>
<ul class="jobs" id="jobs" aria-labelledby="jobs-title"></ul>
<p id="more" class="faint" hidden></p>
</section>
<section aria-labelledby="activity-title">
<div class="head"><h2 id="activity-title">Activity</h2>
<div class="tabs" role="tablist" aria-labelledby="activity-title">
${tab('deliveries', 'Webhooks')}${tab('requests', 'Requests')}${tab('ledger', 'Ledger')}
</div></div>
${panel('deliveries', ['Time', 'Event', 'Job', 'Sent to', 'Attempt', 'Answer', 'Send again'])}
${panel('requests', ['Time', 'Method', 'Path', 'Answer', 'Repeat'])}
${panel('ledger', ['Time', 'Entry', 'Job', 'Tokens', 'Balance'])}
</section>
</main>`;

const ASIDE = `<aside aria-label="Access and settings">
<section class="box" aria-labelledby="access-title"><h2 id="access-title">Access</h2>
${secret('url', 'Base URL')}${secret('key', 'API key')}${secret('secret', 'Signing secret')}
</section>
<section class="box" aria-labelledby="money-title"><h2 id="money-title">Balance</h2>
<p class="figure"><span id="free">0</span> <span class="faint">tokens free</span></p>
<p class="faint" id="spent">0 reserved, 0 charged</p>
<button type="button" id="topup">Top up 20 USD</button>
</section>
<section class="box" aria-labelledby="service-title"><h2 id="service-title">Service</h2>
<label class="switch"><input type="checkbox" id="dispatch" checked> <span>Creates are dispatched</span></label>
<p class="rule"><span id="outcomes">No outcome set</span> <button type="button" id="clear-outcomes" hidden>Clear</button></p>
<p class="rule"><span id="faults">No fault rule</span> <button type="button" id="clear-faults" hidden>Clear</button></p>
<label class="switch"><input type="checkbox" id="shortcuts" checked> <span>Single-key shortcuts</span></label>
<button type="button" id="reset" class="danger">Reset</button>
</section>
</aside>`;

function tab(id: string, title: string): string {
  return `<button type="button" role="tab" id="tab-${id}" aria-controls="panel-${id}">${title} <span class="count"></span></button>`;
}

function panel(id: string, columns: readonly string[]): string {
  const heads = columns.map((column) => `<th scope="col" class="${className(column)}">${column}</th>`).join('');
  return `<div role="tabpanel" id="panel-${id}" class="panel ${id}" aria-labelledby="tab-${id}" tabindex="0" hidden>
<table><thead><tr>${heads}</tr></thead><tbody id="${id}"></tbody></table><p class="faint none">Nothing yet.</p></div>`;
}

function className(column: string): string {
  return column.toLowerCase().replace(/ .*/, '');
}

function secret(id: string, title: string): string {
  return `<div class="secret"><span class="label" id="label-${id}">${title}</span>
<code id="${id}" aria-labelledby="label-${id}"></code>
<button type="button" data-copy="${id}" aria-label="Copy ${title}">Copy</button></div>`;
}
