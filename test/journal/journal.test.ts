import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { fileJournal, saveOutput } from '../../src/adapters/node/index.js';
import { copyOutput } from '../../src/adapters/storage/index.js';
import {
  createBudget,
  type GenClient,
  GenError,
  isCompleted,
  type Job,
  type JobEvent,
  type Journal,
  type JournalEntry,
  type RequestEvent,
  sharedJournal,
  usdOf,
} from '../../src/index.js';
import { createSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { memoryStore } from '../../src/store/store.js';

/** A journal of two functions, as a user writes it. */
function listJournal() {
  const list: JournalEntry[] = [];
  const journal = { append: (entry: JournalEntry) => void list.push(entry), entries: () => list };
  return { list, journal };
}

async function all(jobs: AsyncIterable<Job>): Promise<Job[]> {
  const list: Job[] = [];
  for await (const job of jobs) list.push(job);
  return list;
}

const PROMPT = { prompt: 'a fox' };
let sandbox: Sandbox;
let folder = '';
beforeEach(() => {
  sandbox = createSandbox();
  folder = mkdtempSync(join(tmpdir(), 'gen-journal-'));
  return () => rmSync(folder, { recursive: true, force: true });
});

describe('the journal of a client', () => {
  test('has the code of a job that failed', async () => {
    const { list, journal } = listJournal();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
    const client = sandbox.client({ journal });
    const job = await client.videos.createAndWait(PROMPT, { throwOnFailure: false });
    expect(list.at(-1)).toMatchObject({
      phase: 'final',
      jobId: job.id,
      status: 'failed',
      errorCode: 'generation_rejected',
    });
    expect(await all(client.resume())).toEqual([]);
  });

  test('has the create before it is sent, with its key, call, params, label and the time', async () => {
    const { list, journal } = listJournal();
    const seen: JournalEntry[][] = [];
    const client = sandbox.client({ journal, hooks: { onRequest: () => void seen.push([...list]) } });
    const created = await client.videos.create(PROMPT, { label: 'user-7' });
    const opened = {
      key: created.idempotencyKey,
      call: 'videos',
      params: PROMPT,
      at: expect.any(String),
      label: 'user-7',
    };
    expect(seen[0]).toEqual([opened]);
    expect(list).toEqual([
      opened,
      {
        phase: 'accepted',
        key: created.idempotencyKey,
        jobId: created.job.id,
        at: expect.any(String),
        quotedTokens: 15,
      },
    ]);
  });

  test('has the ids of the uploads in the place of files', async () => {
    const { list, journal } = listJournal();
    const png = new Blob([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')], { type: 'image/png' });
    await sandbox.client({ journal }).videos.create({ ...PROMPT, first_frame_upload_id: png });
    expect(list[0]).toMatchObject({ params: { first_frame_upload_id: expect.stringMatching(/^upl_/) } });
  });

  test('learns how the job ended, and that its file is stored', async () => {
    const { list, journal } = listJournal();
    const client = sandbox.client({ journal });
    const job = await client.videos.createAndWait(PROMPT);
    await saveOutput(client, job, `${folder}/`);
    const key = expect.any(String);
    expect(list.slice(2)).toMatchObject([
      { phase: 'final', key, jobId: job.id, status: 'completed', chargedTokens: 15, model: 'svc-video-fast' },
      { phase: 'stored', key, jobId: job.id },
    ]);
  });

  test.each([
    ['the service refuses it', { status: 422, code: 'invalid_request' }, 'refused'],
    ['generation is paused', { status: 503, code: 'dispatch_disabled' }, 'unsent'],
  ])('closes a create when %s', async (_, fault, reason) => {
    const { list, journal } = listJournal();
    sandbox.faults.add({ match: { path: '/v1/videos' }, ...fault, times: 9 });
    await expect(sandbox.client({ journal, maxRetries: 0 }).videos.create(PROMPT)).rejects.toThrow(GenError);
    expect(list[1]).toMatchObject({ phase: 'closed', reason, code: fault.code });
    expect(await all(sandbox.client({ journal }).resume())).toEqual([]);
  });

  test('stays out of a create that is refused before the network', async () => {
    const { list, journal } = listJournal();
    const client = sandbox.client({ journal, budget: createBudget({ maxTokens: 1 }) });
    await expect(client.videos.create({ prompt: ' ' })).rejects.toThrow('prompt');
    expect(list).toEqual([]);
  });

  test('rejects the call unsent when it cannot be written, and names itself', async () => {
    const journal: Journal = {
      name: 'my table',
      append: () => Promise.reject(new Error('no space')),
      entries: () => [],
    };
    const error = await sandbox
      .client({ journal })
      .videos.create(PROMPT)
      .catch((reason: unknown) => reason);
    expect(GenError.isInstance(error) && error.message).toMatch(/"my table" could not be written.*not sent: no space/);
    expect(error).toHaveProperty('idempotencyKey');
    expect(sandbox.requests).toEqual([]);
  });

  test('closes an entry that was written after the call had given up', async () => {
    const { list, journal } = listJournal();
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slow: Journal = { ...journal, append: (entry) => held.then(() => journal.append(entry)) };
    await expect(sandbox.client({ journal: slow, timeoutMs: 20 }).videos.create(PROMPT)).rejects.toThrow('not sent');
    release();
    await expect.poll(() => list.length).toBe(2);
    expect(list[1]).toMatchObject({ phase: 'closed', reason: 'unsent' });
  });

  test('does not fail a paid call when a later entry cannot be written', async () => {
    const { list, journal } = listJournal();
    const warnings: string[] = [];
    const log = { error() {}, warn: (message: string) => void warnings.push(message), info() {}, debug() {} };
    const full: Journal = {
      ...journal,
      append: (entry) => (entry.phase === undefined ? journal.append(entry) : Promise.reject(new Error('disk full'))),
    };
    const created = await sandbox.client({ journal: full, logger: log }).videos.create(PROMPT);
    expect(warnings[0]).toContain('disk full');
    expect(list).toHaveLength(1);
    const [job] = await all(sandbox.client({ journal }).resume());
    expect(job?.id).toBe(created.job.id);
  });
});

describe('resume', () => {
  test('sends an open create again under its own key: one job, whether or not the first one arrived', async () => {
    const { list, journal } = listJournal();
    sandbox.faults.add({ match: { path: '/v1/videos' }, commitThenDrop: true });
    sandbox.faults.add({ match: { path: '/v1/videos' }, reset: true });
    for (const label of ['arrived', 'lost']) {
      await expect(sandbox.client({ journal, maxRetries: 0 }).videos.create(PROMPT, { label })).rejects.toThrow(
        GenError,
      );
    }
    expect(list).toHaveLength(2);
    expect(sandbox.jobs).toHaveLength(1);
    const jobs = await all(sandbox.client({ journal }).resume());
    expect(jobs.map(({ status }) => status)).toEqual(['completed', 'completed']);
    expect(sandbox.jobs).toHaveLength(2);
    expect(await all(sandbox.client({ journal }).resume())).toHaveLength(2);
    expect(sandbox.jobs).toHaveLength(2);
  });

  test('does not take a refusal before the key for the end of an earlier attempt', async () => {
    const { journal } = listJournal();
    sandbox.faults.add({ match: { path: '/v1/videos' }, commitThenDrop: true });
    await expect(sandbox.client({ journal, maxRetries: 0 }).videos.create(PROMPT)).rejects.toThrow(GenError);
    sandbox.faults.add({ match: { path: '/v1/videos' }, status: 401, code: 'invalid_api_key' });
    await expect(all(sandbox.client({ journal, maxRetries: 0 }).resume())).rejects.toThrow(GenError);
    expect(await all(sandbox.client({ journal }).resume())).toHaveLength(1);
    expect(sandbox.jobs).toHaveLength(1);
  });

  test('yields a failed job once, and a completed one until it is stored', async () => {
    const { journal } = listJournal();
    const client = sandbox.client({ journal });
    await client.videos.create({ prompt: 'a [fail:generation_rejected]' });
    await client.images.create({ prompt: 'b' });
    await client.images.create({ prompt: 'c' });
    const first = await all(client.resume());
    expect(first.map(({ status }) => status).sort()).toEqual(['completed', 'completed', 'failed']);
    const [saved, copied] = (await all(client.resume())).filter(isCompleted);
    if (saved === undefined || copied === undefined) throw new Error('two completed jobs are missing');
    await saveOutput(client, saved, `${folder}/`);
    expect((await all(client.resume())).map(({ id }) => id)).toEqual([copied.id]);
    await copyOutput(client, copied, { put: async (body) => void (await new Response(body).arrayBuffer()) });
    expect(await all(client.resume())).toEqual([]);
  });

  test('takes a journal that the client was not made with, and notes what is stored there', async () => {
    const { journal } = listJournal();
    await sandbox.client({ journal }).images.create(PROMPT);
    const other = sandbox.client();
    for await (const job of other.resume(journal)) if (isCompleted(job)) await saveOutput(other, job, `${folder}/`);
    expect(await all(other.resume(journal))).toEqual([]);
  });

  test('ends the others before it throws for one that cannot be resumed', async () => {
    const { list, journal } = listJournal();
    await sandbox.client({ journal }).images.create(PROMPT);
    const at = new Date().toISOString();
    list.push(
      { key: 'gone', call: 'images', params: PROMPT, at },
      { phase: 'accepted', key: 'gone', jobId: 'job_gone', at },
    );
    const seen: Job[] = [];
    const running = (async () => {
      for await (const job of sandbox.client({ journal }).resume()) seen.push(job);
    })();
    await expect(running).rejects.toThrow(/job_gone|not found/i);
    expect(seen).toHaveLength(1);
  });

  test('rejects without a journal, and names one that cannot be read', async () => {
    await expect(all(sandbox.client().resume())).rejects.toThrow('resume() needs a journal');
    const broken: Journal = {
      name: 'orders',
      append() {},
      entries: () => Promise.reject(new Error('connection refused')),
    };
    await expect(all(sandbox.client({ journal: broken }).resume())).rejects.toThrow(
      'The journal "orders" could not be read: connection refused',
    );
  });

  test('reserves once in a budget', async () => {
    const { journal } = listJournal();
    const budget = createBudget({ maxTokens: 15 });
    sandbox.faults.add({ match: { path: '/v1/videos' }, commitThenDrop: true });
    const client = sandbox.client({ journal, budget, maxRetries: 0 });
    await expect(client.videos.create(PROMPT)).rejects.toThrow(GenError);
    expect(await all(client.resume())).toHaveLength(1);
    expect(await budget.usage()).toMatchObject({ spentTokens: 15, leftTokens: 0 });
  });

  test('stops at once when it is aborted, and leaves the journal as it is', async () => {
    const held = createSandbox({ clock: 'manual' });
    const { journal } = listJournal();
    const client: GenClient = held.client({ journal });
    await client.videos.create(PROMPT);
    const controller = new AbortController();
    const running = all(client.resume(undefined, { signal: controller.signal }));
    controller.abort(new Error('enough'));
    await expect(running).rejects.toThrow('enough');
    expect(await Promise.resolve(journal.entries())).toHaveLength(2);
  });
});

describe.each([
  ['a file', () => fileJournal(join(folder, 'jobs.jsonl'))],
  ['a shared store', () => sharedJournal(memoryStore())],
])('%s as the journal', (_, make) => {
  test('keeps what another client resumes', async () => {
    const journal = make();
    sandbox.faults.add({ match: { path: '/v1/images' }, commitThenDrop: true });
    const client = sandbox.client({ journal, maxRetries: 0 });
    await expect(client.images.create(PROMPT)).rejects.toThrow(GenError);
    const running = await client.videos.create(PROMPT);
    const done = await client.images.createAndWait(PROMPT);
    await journal.stored(done.id);
    const jobs = await all(sandbox.client({ journal }).resume());
    expect(jobs).toHaveLength(2);
    expect(jobs.map(({ id }) => id)).toContain(running.job.id);
    expect(sandbox.jobs).toHaveLength(3);
    for (const { id } of jobs) await journal.stored(id);
    expect(await all(sandbox.client({ journal }).resume())).toEqual([]);
  });

  test('returns what was appended', async () => {
    const journal = make();
    const opened: JournalEntry = { key: 'k', call: 'images', params: PROMPT, at: new Date().toISOString() };
    await journal.append(opened);
    expect([...(await journal.entries())]).toEqual([opened]);
  });
});

describe('shared journals', () => {
  test('do not see each other under different names, and name themselves when the store is away', async () => {
    const store = memoryStore();
    await sandbox.client({ journal: sharedJournal(store, { name: 'one' }) }).images.create(PROMPT);
    expect(await sharedJournal(store, { name: 'two' }).entries()).toEqual([]);
    const away = { ...store, read: () => Promise.reject(new Error('ECONNREFUSED')) };
    await expect(all(sandbox.client({ journal: sharedJournal(away) }).resume())).rejects.toThrow(
      'The journal "jobs" could not be read: ECONNREFUSED',
    );
    expect(() => sharedJournal({} as typeof store)).toThrow(GenError);
  });

  test.each<[string, () => Promise<never>]>([
    ['fails', () => Promise.reject(new TypeError('fetch failed'))],
    ['never answers', () => new Promise(() => {})],
  ])('whose store %s says that the call can be tried again, when it is written and when it is read', async (_, ask) => {
    const away = { ...memoryStore(), read: ask, write: ask, timeoutMs: 20 };
    const client = sandbox.client({ journal: sharedJournal(away) });
    await expect(client.videos.create(PROMPT)).rejects.toMatchObject({ recovery: 'retry' });
    await expect(all(client.resume())).rejects.toMatchObject({ recovery: 'retry' });
    expect(sandbox.requests).toEqual([]);
  });

  test('that is set up wrongly says so', async () => {
    const wrong = { ...memoryStore(), read: () => Promise.resolve({} as never) };
    const client = sandbox.client({ journal: sharedJournal(wrong) });
    await expect(client.videos.create(PROMPT)).rejects.toMatchObject({ recovery: 'fix_setup' });
  });

  test('lose no entry when many creates are written at once', async () => {
    const journal = sharedJournal(memoryStore());
    const client = sandbox.client({ journal });
    await Promise.all(Array.from({ length: 40 }, (_, at) => client.images.create({ prompt: `fox ${at}` })));
    expect(await journal.entries()).toHaveLength(80);
  });
});

describe('the label of a create', () => {
  test('is in its job events, and not in what is sent', async () => {
    const events: JobEvent[] = [];
    const client = sandbox.client({ hooks: { onJob: (event) => void events.push(event) } });
    await client.videos.createAndWait(PROMPT, { label: 'user-7' });
    expect(events.map(({ phase, label }) => [phase, label])).toEqual([
      ['accepted', 'user-7'],
      ['final', 'user-7'],
    ]);
    expect(JSON.stringify(sandbox.requests)).not.toContain('user-7');
    await expect(client.videos.create(PROMPT, { label: '' })).rejects.toThrow('label must be a non-empty string');
  });
});

test('the hooks see the key before the create is sent', async () => {
  const keys: (string | undefined)[] = [];
  const onRequest = ({ idempotencyKey }: RequestEvent) => void keys.push(idempotencyKey);
  const client = sandbox.client({ hooks: { onRequest } });
  const created = await client.videos.create(PROMPT, { idempotencyKey: 'order-7' });
  await client.jobs.get(created.job.id);
  expect(keys).toEqual(['order-7', undefined]);
});

test('usdOf says what tokens cost', () => {
  expect([usdOf(0), usdOf(1), usdOf(3), usdOf(15)]).toEqual([0, 0.05, 0.15, 0.75]);
});
