// The proxy in a Worker: a normal page from the upload to the file, and hostile requests. The service runs on Node.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inWorkerd, type Worker } from './bundle.js';
import type { Context, Suite } from './suite.js';

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

/** Sends requests like a user's page. */
class Page {
  readonly #worker: Worker;
  readonly #user: string | null;

  constructor(worker: Worker, user: string | null) {
    this.#worker = worker;
    this.#user = user;
  }

  async post(verb: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const response = await this.ask(verb, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      ...(body instanceof Uint8Array || body instanceof ReadableStream
        ? { body, duplex: 'half' }
        : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Answer['body'] };
  }

  ask(
    path: string,
    { headers, ...init }: { headers?: object; method?: string; body?: unknown; duplex?: string } = {},
  ): Promise<Response> {
    const session = this.#user === null ? {} : { 'x-session': this.#user };
    return this.#worker.dispatchFetch(`${ORIGIN}/api/gen/${path}`, {
      ...init,
      headers: { 'x-gen-page': '1', 'sec-fetch-site': 'same-origin', ...session, ...headers },
    });
  }
}

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

async function asWorker({ project }: Context): Promise<void> {
  const { createSandbox } = (await import(
    pathToFileURL(join(project, 'node_modules/gen-client/dist/sandbox.js')).href
  )) as typeof import('gen-client/sandbox');
  const sandbox = createSandbox({ jobDurationMs: 1_500 });
  const api = await sandbox.listen({ port: 0 });
  const code = worker({ apiKey: sandbox.apiKey, baseUrl: api.url });
  try {
    await inWorkerd(project, code, async (workerd) => {
      const ann = new Page(workerd, 'ann');
      const ticket = await anHonestPage(ann);
      equal('the jobs', sandbox.jobs.length, 1);
      await hostileRequests({ ann, nobody: new Page(workerd, null), ticket });
      equal('the jobs after the hostile requests', sandbox.jobs.length, 1);
    });
  } finally {
    await api.close();
  }
}

/** Uploads an image, creates an image, follows it in two tabs, and reads a range of its file. Returns its ticket. */
async function anHonestPage(page: Page): Promise<string> {
  const started = await page.post('upload', { name: 'fox.png', type: 'image/png', size: PNG.length });
  equal('the upload', started.status, 200);
  const put = { 'x-gen-ticket': String(started.body.put) };
  equal('the bytes', (await page.post('bytes', PNG, put)).status, 200);
  const ended = await page.post('uploaded', { put: started.body.put });
  equal('the finished upload', ended.status, 200);
  const ask = { key: `${KEY}1`, input: { prompt: 'a fox', reference_upload_ids: [ended.body.upload] } };
  // A double click.
  const [created, again] = await Promise.all([page.post('images', ask), page.post('images', ask)]);
  equal('the create', created.status, 200);
  equal('the second click', again.status, 200);
  const [response, other] = await Promise.all([watched(page, created.body), watched(page, again.body)]);
  equal('the job', response.status, 'completed');
  equal('the job in the other tab', other.status, 'completed');
  const part = await page.ask(String(response.url), { headers: { range: 'bytes=1-3' } });
  equal('a part of the file', `${part.status} ${await part.text()}`, '206 PNG');
  return String(created.body.ticket);
}

/** Polls until the job has ended, like the page. */
async function watched(page: Page, { ticket, ...first }: Answer['body']): Promise<Answer['body']> {
  let response: Answer['body'] = first;
  while (response.phase === 'waiting') {
    const next = await page.post('watch', { jobs: [{ ticket, seen: response.status }] });
    equal('the progress', next.status, 200);
    response = { ...response, ...jobOf(next) };
  }
  return response;
}

/** Returns the only job of a watch response. */
function jobOf({ body }: Answer): Answer['body'] {
  return (body.jobs as readonly (Answer['body'] | null)[])[0] ?? {};
}

interface Hostile {
  readonly ann: Page;
  readonly nobody: Page;
  readonly ticket: string;
}

/** Attacks that depend on the runtime's headers, HMAC, and streams. For all others, see test/proxy/attacks.test.ts. */
async function hostileRequests({ ann, nobody, ticket }: Hostile): Promise<void> {
  const ask = { key: `${KEY}2`, input: { prompt: 'a fox' } };
  const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' };
  const long = new Blob([JSON.stringify({ ...ask, input: { prompt: 'a'.repeat(140_000) } })]);
  const cases: readonly (readonly [name: string, status: number, attack: () => Promise<Answer>])[] = [
    ['no session', 401, () => nobody.post('images', ask)],
    ['another site', 403, () => ann.post('images', ask, foreign)],
    ['a body of 140 kB without a length', 413, () => ann.post('images', long.stream())],
  ];
  for (const [name, status, attack] of cases) equal(name, (await attack()).status, status);
  for (const wrong of [`${ticket.split('.')[0]}.${'A'.repeat(43)}`, rewritten(ticket)])
    equal('a forged ticket', jobOf(await ann.post('watch', { jobs: [{ ticket: wrong }] })).code, 'not_found');
}

/** Returns the ticket for another job, with its old signature. */
function rewritten(ticket: string): string {
  const [text = '', signature] = ticket.split('.');
  const content = JSON.parse(Buffer.from(text, 'base64url').toString());
  if (!String(content.id).startsWith('job_')) throw new Error(`the ticket has no job: ${JSON.stringify(content)}`);
  const changed = JSON.stringify({ ...content, id: 'job_of_somebody_else' });
  return `${Buffer.from(changed).toString('base64url')}.${signature}`;
}

function equal(what: string, seen: unknown, wanted: unknown): void {
  if (seen !== wanted) throw new Error(`${what}: ${String(seen)} instead of ${String(wanted)}`);
}

/** A PNG of one pixel. */
const PNG = new Uint8Array(
  Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=', 'base64'),
);

export const suites: Suite[] = [{ name: 'workerd, the proxy of pages', run: asWorker }];
