// The proxy in a Worker: a page's requests from the upload to the file, and attacks. The service runs on Node.
import assert from 'node:assert/strict';
import { runInWorkerd, type Worker } from './bundle.js';
import { type Context, importSandbox, type Suite } from './suite.js';

const ORIGIN = 'https://app.test';
const KEY = 'b5f1c0de-0000-4000-8000-00000000000';

const worker = (config: object) => `
import { GenClient } from 'gen-client';
import { createGenProxy } from 'gen-client/proxy';
const proxy = createGenProxy({
  client: new GenClient(${JSON.stringify(config)}),
  secret: 'a secret of the app that has more than 32 characters',
  authorize: (request) => {
    const id = request.headers.get('x-session');
    return id === null ? null : { id };
  },
  create: { images: (input) => ({ prompt: input.prompt, reference_upload_ids: input.reference_upload_ids }) },
  upload: ({ mime_type, file_size }) => mime_type === 'image/png' && file_size < 1_000_000,
});
export default { fetch: (request) => proxy(request) };`;

/** Sends a page's requests, with its user's session. */
class Page {
  readonly #worker: Worker;
  readonly #user: string | null;

  constructor(worker: Worker, user: string | null) {
    this.#worker = worker;
    this.#user = user;
  }

  async post(route: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
    const isRaw = body instanceof Uint8Array || body instanceof ReadableStream;
    const response = await this.fetch(route, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: isRaw ? body : JSON.stringify(body),
      duplex: 'half',
    });
    return { status: response.status, body: (await response.json()) as Reply['body'] };
  }

  fetch(path: string, { headers, ...init }: { headers: object; [option: string]: unknown }): Promise<Response> {
    const session = this.#user === null ? {} : { 'x-session': this.#user };
    return this.#worker.dispatchFetch(`${ORIGIN}/api/gen/${path}`, {
      ...init,
      headers: { 'x-gen-page': '1', 'sec-fetch-site': 'same-origin', ...session, ...headers },
    });
  }
}

interface Reply {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

async function runInWorker({ project }: Context): Promise<void> {
  const { createSandbox } = await importSandbox(project);
  const sandbox = createSandbox({ jobDurationMs: 1_500 });
  const api = await sandbox.listen({ port: 0 });
  const code = worker({ apiKey: sandbox.apiKey, baseUrl: api.url });
  try {
    await runInWorkerd(project, code, async (workerd) => {
      const page = new Page(workerd, 'ann');
      const ticket = await createAndReadRange(page);
      assert.equal(sandbox.jobs.length, 1);
      await attack({ page, signedOut: new Page(workerd, null), ticket });
      assert.equal(sandbox.jobs.length, 1, 'no attack creates a job');
    });
  } finally {
    await api.close();
  }
}

/** Uploads an image, creates one from it with a double click, and reads a range of its file. Returns the job's ticket. */
async function createAndReadRange(page: Page): Promise<string> {
  const startReply = await page.post('upload', { name: 'fox.png', type: 'image/png', size: PNG.length });
  assert.equal(startReply.status, 200);
  const bytes = await page.post('bytes', PNG, { 'x-gen-ticket': String(startReply.body.put) });
  assert.equal(bytes.status, 200);
  const completed = await page.post('uploaded', { put: startReply.body.put });
  assert.equal(completed.status, 200);
  const request = { key: `${KEY}1`, input: { prompt: 'a fox', reference_upload_ids: [completed.body.upload] } };
  // A double click.
  const creates = await Promise.all([page.post('images', request), page.post('images', request)]);
  const jobs = await Promise.all(
    creates.map(({ status, body }) => {
      assert.equal(status, 200);
      return outcomeOf(page, body);
    }),
  );
  for (const job of jobs) assert.equal(job.status, 'completed');
  const part = await page.fetch(String(jobs[0]?.url), { headers: { range: 'bytes=1-3' } });
  assert.deepEqual([part.status, await part.text()], [206, 'PNG']);
  return String(creates[0]?.body.ticket);
}

/** Watches a job until it ends. */
async function outcomeOf(page: Page, { ticket, ...first }: Reply['body']): Promise<Reply['body']> {
  let job: Reply['body'] = first;
  while (job.phase === 'waiting') {
    const reply = await page.post('watch', { jobs: [{ ticket, seen: job.status }] });
    assert.equal(reply.status, 200);
    job = { ...job, ...jobOf(reply) };
  }
  return job;
}

/** Returns the only job in the reply to a watch. */
function jobOf({ body }: Reply): Reply['body'] {
  return (body.jobs as readonly (Reply['body'] | null)[])[0] ?? {};
}

interface Targets {
  readonly page: Page;
  readonly signedOut: Page;
  readonly ticket: string;
}

/** Sends the attacks that depend on the runtime's headers, HMAC, and streams. test/proxy/attacks.test.ts has the others. */
async function attack({ page, signedOut, ticket }: Targets): Promise<void> {
  const request = { key: `${KEY}2`, input: { prompt: 'a fox' } };
  const crossSite = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' };
  const large = new Blob([JSON.stringify({ ...request, input: { prompt: 'a'.repeat(140_000) } })]);
  const cases: readonly (readonly [name: string, status: number, send: () => Promise<Reply>])[] = [
    ['no session', 401, () => signedOut.post('images', request)],
    ['another site', 403, () => page.post('images', request, crossSite)],
    ['a body of 140 kB without a length', 413, () => page.post('images', large.stream())],
  ];
  for (const [name, status, send] of cases) assert.equal((await send()).status, status, name);
  for (const forged of [`${ticket.split('.')[0]}.${'A'.repeat(43)}`, ticketOfOtherJob(ticket)]) {
    const reply = await page.post('watch', { jobs: [{ ticket: forged }] });
    assert.equal(jobOf(reply).code, 'not_found', 'a forged ticket');
  }
}

/** Changes the job ID in a ticket, but not the ticket's signature. */
function ticketOfOtherJob(ticket: string): string {
  const [text = '', signature] = ticket.split('.');
  const content = JSON.parse(Buffer.from(text, 'base64url').toString());
  assert.match(content.id, /^job_/);
  const changed = JSON.stringify({ ...content, id: 'job_of_another_user' });
  return `${Buffer.from(changed).toString('base64url')}.${signature}`;
}

/** A PNG of one pixel. */
const PNG = new Uint8Array(
  Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=', 'base64'),
);

export const suites: Suite[] = [{ name: 'browser proxy in workerd', run: runInWorker }];
