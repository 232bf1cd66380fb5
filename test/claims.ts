// Claims in the README, the guides, and SECURITY.md, each with the test or command that proves it.

/** A sentence, the test file or command that proves it, and the test's title. `%s` matches any text. */
export type Claim = readonly [sentence: string, provenBy: string, title?: string];

/** Placeholders in a test's title: `%s`, `$name`, `${name}`. */
const PLACEHOLDER = /%[a-z]|\$\{[^}]*\}|\$\w+/g;

/** Returns true if a test's title, in its file or in a run, matches a claim's. */
export function titleMatches(claimTitle: string, testTitle: string): boolean {
  const parts = claimTitle.split(PLACEHOLDER).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.+')}$`, 's').test(testTitle);
}

export const CLAIMS: Readonly<Record<string, readonly Claim[]>> = {
  'README.md': [
    [
      'Each create sends one idempotency key. Retries reuse it, and you can read it from the result or the error.',
      'test/transport/retries.test.ts',
      'a reset and a truncated body are retried with the same idempotency key',
    ],
    [
      'No double charges.',
      'test/transport/campaign.test.ts',
      '200 creates through seeded faults create 200 jobs, charge each once, and leave no timers or listeners',
    ],
    [
      '`timeoutMs` limits one attempt: connect, headers, and body.',
      'test/transport/deadlines.test.ts',
      'a stalled body times out, its connection is closed, and the retry succeeds',
    ],
    [
      'An abort acts immediately',
      'test/transport/deadlines.test.ts',
      'an abort rejects %s immediately with its reason',
    ],
    [
      '500 jobs in one `Promise.all` are fine',
      'test/waiting/naive-code.test.ts',
      'creates 500 videos with one Promise.all under the documented limits',
    ],
    [
      "`duration: 7` does not compile for a model that doesn't support it",
      'test/types.test.ts',
      'the check reports code that wrongly compiles or fails, fails elsewhere, or fails with another message',
    ],
    [
      'TypeScript 5.7 or later',
      'test/types.test.ts',
      'each documented type rule is enforced, and every method is typed: %s, %s',
    ],
    [
      'Node.js 22.13 or later, Bun, Deno, Cloudflare Workers, or the Edge runtime. ESM and CommonJS.',
      'npm run test:runtimes',
    ],
    [
      'save this as `fox.mjs`',
      'test/examples.test.ts',
      "the README's fox.mjs runs twice without an error and prints its progress",
    ],
    ['needs none of the three', 'test/package.test.ts', 'the webhooks entry point imports nothing'],
    [
      'If a listener throws, the response is 500, so that the service can retry.',
      'test/webhooks/webhook-handler.test.ts',
      'that throw %j report it with the event',
    ],
    [
      'Keep it on a server: a client in a page throws when it is',
      'test/transport/config.test.ts',
      'throws unless allowed, and never sets User-Agent',
    ],
    [
      "so that another library's `fetch` can send it",
      'test/transport/custom-fetch.test.ts',
      'a custom fetch is called with a URL and an init that contains the body',
    ],
    [
      'stored records (queue, durable runs, stores)',
      'test/replay/replay.test.ts',
      'a durable run replays with the same steps and outcome: %s',
    ],
  ],
  'docs/waiting.md': [
    [
      'It never decreases, and stays at 0.99 or less until the job has ended',
      'test/waiting/watch-job.test.ts',
      'estimates from completed jobs: progress grows to at most 0.99, and etaMs is the time left',
    ],
    [
      'eighth of them, 15 a minute, for your own `jobs.get`',
      'test/waiting/naive-code.test.ts',
      'leaves slots for jobs.get calls while 200 waits poll at the full rate',
    ],
    [
      'polls once more, for five seconds at most, unless its last poll is more recent',
      'test/waiting/last-poll.test.ts',
      'polls once more if its process was suspended (%s)',
    ],
    [
      'Five such responses in a row end the wait',
      'test/waiting/last-poll.test.ts',
      'with status %i fails its poll, and the fifth in a row ends the wait',
    ],
    [
      'Two waits on one job share one poll',
      'test/waiting/wait-for-job.test.ts',
      'shares its polls with all other waits on its job',
    ],
    [
      'Waits poll a video every 10 to 12 seconds',
      'test/waiting/wait-for-job.test.ts',
      'first polls a job when it could have finished, then about every eleven seconds',
    ],
    [
      '500 waits end with their webhooks',
      'test/waiting/webhooks.test.ts',
      'end 0.1 s late on average and 2.5 s at worst, with at most 450 polls',
    ],
    [
      'A poll that the service rejects with 400, 401, 403, or 404 ends a wait',
      'test/waiting/failing-polls.test.ts',
      'with %i ends the wait immediately',
    ],
    [
      'the event itself ends the waits on a completed job',
      'test/waiting/webhooks.test.ts',
      'ends the wait immediately, without a cost or expiry, if no poll slot frees up within two seconds',
    ],
  ],
  'docs/limits-and-retries.md': [
    [
      'it takes five seconds longer',
      'test/limits/counting-service.test.ts',
      "retains its slot until it leaves the service's window (%s)",
    ],
    [
      'Clients of one account share one count, even if their `limits` differ',
      'test/limits/counting-service.test.ts',
      'share one count, and each waits until the count is below its own limit',
    ],
    [
      'twice as many with each round that the service accepts',
      'test/limits/counting-service.test.ts',
      'resumes creates gradually after a 429 (Retry-After: %s)',
    ],
    [
      'whether the service counts fixed or sliding windows',
      'test/limits/in-memory.test.ts',
      'is never exceeded in any fixed or sliding window, with any network delay',
    ],
    ['doubles from half a second to eight, with jitter', 'test/rules/tables.test.ts', 'after %i failures is %i ms'],
  ],
  'docs/budgets.md': [
    [
      'charges exceed the limit by at most one job, if a job costs what the service quoted',
      'test/budget/invariant.test.ts',
      "a period's jobs cost at most its limit plus one job, with unknown prices %s",
    ],
    [
      'they count as lost after 30 seconds',
      'test/budget/time.test.ts',
      'of a crashed process expires after 30 seconds, but the tokens of its creates stay reserved',
    ],
  ],
  'docs/telemetry.md': [
    [
      'a process retains its last 10,000 jobs',
      'test/events/memory.test.ts',
      'is limited to 10,000 jobs across all accounts, and the traces of evicted jobs end',
    ],
  ],
  'docs/files.md': [
    [
      'files over 50 MB (images), 200 MB (videos), and 15 MB (audio) are rejected before a byte is sent',
      'test/files/upload.test.ts',
      'a file of %s over %i MB',
    ],
    ['The copy is one request of known length, so the object is complete or absent', 'npm run campaign -- storage'],
    [
      'or has not responded after ten seconds',
      'test/storage/output-handler.test.ts',
      "that doesn't respond for ten seconds is canceled and falls back to the service's file",
    ],
  ],
  'docs/webhooks.md': [
    [
      'timestamp 300 seconds or more in the past or future is rejected',
      'test/webhooks/verify-webhook.test.ts',
      'is accepted with a clock difference of %i ms',
    ],
  ],
  'docs/jobs-that-survive.md': [
    [
      '`kill -9` at any moment, then start again: every create has one job',
      'test/store/crashes.test.ts',
      'that is killed %s resumes its job when it restarts',
    ],
  ],
  'docs/queues-and-durable-runs.md': [
    [
      'Kill a worker at any point and another continues with the same job',
      'test/bullmq/crashes.test.ts',
      'charges each of %s calls once despite %s',
    ],
    ['Tests run them on the real engines', 'npm run campaign -- durable'],
    [
      'and at most five, however many runs wait',
      'test/durable/crowd.test.ts',
      'each of %i concurrent runs creates its job within five steps, roughly in queue order (%i processes)',
    ],
    [
      'grow from 10 seconds to at most five minutes',
      'test/rules/run-steps.test.ts',
      'with the rules %j and a running job after %i ms is followed by another poll in %i ms',
    ],
  ],
  'docs/agents.md': [
    [
      'an agent that calls three times pays once and gets its video',
      'test/apps/rpc.test.ts',
      'an agent whose client times out twice pays once for three requests, and gets its video',
    ],
  ],
  'docs/many-processes.md': [
    [
      'Processes that wait take turns, so none is left',
      'test/limits/shared-limits.test.ts',
      'serve every process, whether it has two calls or forty',
    ],
    [
      'A slot costs at most two round trips',
      'test/limits/shared-limits.test.ts',
      "need at most two requests for each of a process's consecutive creates",
    ],
    [
      'A process whose calls wait queries Redis at most twice a second',
      'test/limits/shared-limits.test.ts',
      'need at most two requests a second per process, however many of its calls wait',
    ],
    [
      'A crashed process leaves the queue after 15 seconds',
      'test/limits/shared-limits.test.ts',
      "release a crashed process's queue position, and its slots after one lease",
    ],
    [
      'A store that neither responds nor fails within two seconds',
      'test/limits/store-outage.test.ts',
      "counts as unavailable after %s, and the next calls don't wait for it",
    ],
  ],
  'docs/testing.md': [
    [
      "`createAndWait` returns long before its job's nominal duration has passed",
      'test/sandbox/client.test.ts',
      "by default, completes createAndWait, including processing, in less than the job's 3 s",
    ],
  ],
  'docs/browser.md': [
    [
      'takes 2.8 kB, gzipped',
      'test/size.test.ts',
      'the page entry point fits in 2.8 kB, gzipped, because every visitor pays for it',
    ],
    [
      'A reload resumes the same job, even if the request was sent twice',
      'test/page/chromium.test.ts',
      'creates one job despite reloads at random moments',
    ],
    [
      'A double click returns the same run until its job is created',
      'test/page/stored-runs.test.ts',
      'while it is in flight returns the same run, so a double click creates one job',
    ],
    [
      'A run belongs to its user',
      'test/page/chromium-tabs.test.ts',
      "creates no job for a user who signed out in another tab, and removes that user's runs",
    ],
    [
      'a job that has ended costs no create and no poll',
      'test/page/chromium.test.ts',
      'sends no create and no poll after a reload with finished runs',
    ],
    [
      '64 per user in total, and at most 16 unfinished uploads, then 429',
      'test/proxy/open-requests.test.ts',
      'allows a user 64 open creates, uploads, and waits in total',
    ],
    ['408 after ten seconds', 'test/proxy/attacks.test.ts', 'with a stalled body times out after ten seconds'],
  ],
  'SECURITY.md': [
    [
      'The API key is sent to the origin of `baseUrl` and nowhere else',
      'test/transport/redirects.test.ts',
      'that sends a download to another origin is followed without the API key and the custom headers',
    ],
    [
      'Errors, log lines, `toJSON`, inspection, and stacks contain no key and no webhook secret',
      'test/transport/secrets.test.ts',
      "isn't in any log line, at any level",
    ],
    [
      'A webhook is verified over its raw bytes',
      'test/webhooks/secrets-and-events.test.ts',
      'is parsed only after its signature is verified',
    ],
    [
      'renamed when it is complete',
      'test/files/save-output.test.ts',
      'is replaced with overwrite, and only by the complete file',
    ],
    ['Installing runs no script', 'test/package.test.ts', 'installing runs nothing'],
    [
      'The release workflow uses trusted publishing and stores no token',
      'test/package-release.test.ts',
      "release.yml publishes CI's tarball through OIDC, and stores no token",
    ],
    [
      'not followed if the runtime hides the target',
      'test/transport/redirects.test.ts',
      'whose location a browser hides is rejected with an explanation',
    ],
    ['Shared state contains a key only as a hash', 'test/limits/account-state.test.ts', 'contains no API key'],
    [
      'A client in a browser page throws unless `dangerouslyAllowBrowser` is set',
      'test/transport/config.test.ts',
      'throws unless allowed, and never sets User-Agent',
    ],
    [
      "IDs are encoded and can't escape their segment of a path",
      'test/transport/properties.test.ts',
      'stays a single segment and decodes to itself',
    ],
    [
      'Headers, signatures, and secrets are bounded in size and number',
      'test/webhooks/verify-webhook.test.ts',
      'can have at most sixteen digests',
    ],
    [
      "the file is named after its job's ID",
      'test/files/save-output.test.ts',
      'saveOutput names the file after the job if the path is a directory',
    ],
    ['It listens on loopback by default', 'test/sandbox-server/serve.test.ts', 'listens only on loopback by default'],
  ],
};
