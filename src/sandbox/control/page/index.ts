import { JOB_ERRORS } from '../../../errors/codes.js';
import { SCRIPT } from './script.js';
import { STYLE } from './style.js';

/**
 * The page at `/`: the sandbox's jobs, deliveries, ledger and requests as they move, and buttons to move them. One
 * document with nothing to fetch but the control surface; it may run its own script and no other, and in no frame.
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
${MAIN}
<script nonce="${nonce}">${SCRIPT}</script>
</body>
</html>
`;
}

/** Columns that stand flush right. */
const NUMBERS = ['Tokens', 'Free after'];

const OUTCOMES = [...Object.keys(JOB_ERRORS), 'canceled', 'blocked']
  .map((code) => `<option${code === 'generation_failed' ? ' selected' : ''}>${code}</option>`)
  .join('');

const HEADER = `<header>
<h1>gen-client sandbox</h1>
<dl>
<dt>Base URL</dt><dd><code id="url"></code></dd>
<dt>API key</dt><dd><code id="key"></code> <button type="button" id="copy-key">Copy key</button></dd>
<dt>Signing secret</dt><dd><code id="secret"></code> <button type="button" id="copy-secret">Copy secret</button></dd>
<dt>Balance</dt><dd id="free"></dd>
<dt>Clock</dt><dd id="now"></dd>
</dl>
<div class="bar">
<fieldset><legend>Clock</legend>
<button type="button" data-advance="10">+10 s <kbd>A</kbd></button>
<button type="button" data-advance="60">+1 min <kbd>M</kbd></button>
<form id="advance"><label>Seconds <input type="number" id="seconds" min="0.001" step="any" value="600" required></label>
<button>Advance</button></form></fieldset>
<fieldset><legend>Next job</legend>
<label>ends as <select id="code">${OUTCOMES}</select></label>
<button type="button" id="fail">Fail the next job <kbd>F</kbd></button></fieldset>
<fieldset><legend>Account</legend>
<button type="button" id="topup">Top up 20 USD</button>
<button type="button" id="reset">Reset</button></fieldset>
</div>
<p id="say" role="status"></p>
<p id="offline" class="refused" role="alert" hidden>The sandbox does not answer. Is it still running?</p>
</header>`;

const MAIN = `<main id="main" tabindex="-1">
<h2 id="jobs-title">Jobs</h2>
<p id="no-jobs" class="faint">No job yet. Create one with the key above, or try the curl lines that the sandbox printed.</p>
<ul class="jobs" id="jobs" aria-labelledby="jobs-title"></ul>
${table('deliveries', 'Webhook deliveries', ['Time', 'Event', 'To', 'Attempt', 'Answer', 'Send again'])}
${table('ledger', 'Ledger', ['Time', 'Entry', 'Job', 'Tokens', 'Free after'])}
${table('requests', 'Requests', ['Time', 'Method', 'Path', 'Answer', 'Repeat'])}
</main>`;

function table(id: string, title: string, columns: readonly string[]): string {
  const heads = columns
    .map((column) => `<th scope="col"${NUMBERS.includes(column) ? ' class="number"' : ''}>${column}</th>`)
    .join('');
  return `<section aria-labelledby="${id}-title"><h2 id="${id}-title">${title}</h2>
<div class="scroll" tabindex="0" role="region" aria-labelledby="${id}-title">
<table><thead><tr>${heads}</tr></thead><tbody id="${id}"></tbody></table></div></section>`;
}
