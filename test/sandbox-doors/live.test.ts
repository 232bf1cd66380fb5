import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createSandbox, type Sandbox } from '../../src/sandbox/index.js';

interface Change {
  readonly now: number;
  readonly facts?: { readonly balance: { readonly balanceTokens: number }; readonly counts: Record<string, number> };
  readonly lists?: Record<string, { readonly keys: string[]; readonly rows: { key: string; status?: string }[] }>;
}

const open: AbortController[] = [];
beforeEach(() => void open.splice(0));
afterEach(() => {
  for (const controller of open) controller.abort();
});

/** Follows the stream of the page; what it has told so far stands in the list. */
async function follow(sandbox: Sandbox, query = ''): Promise<Change[]> {
  const controller = new AbortController();
  open.push(controller);
  const { fetch, baseUrl } = sandbox;
  const response = await fetch(`${baseUrl}/_sandbox/events${query}`, { signal: controller.signal });
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const told: Change[] = [];
  const read = async () => {
    let text = '';
    for await (const chunk of (response.body as unknown as AsyncIterable<Uint8Array>) ?? []) {
      text += new TextDecoder().decode(chunk);
      const events = text.split('\n\n');
      text = events.pop() ?? '';
      for (const event of events) told.push(JSON.parse(event.replace(/^data: /, '')));
    }
  };
  read().catch(() => {});
  await vi.waitFor(() => expect(told.length).toBeGreaterThan(0));
  return told;
}

const create = (sandbox: Sandbox, prompt = 'a fox') =>
  sandbox.fetch(`${sandbox.baseUrl}/v1/videos`, {
    method: 'POST',
    headers: { authorization: `Bearer ${sandbox.apiKey}` },
    body: JSON.stringify({ prompt }),
  });

it('tells everything first, and then only what has changed', async () => {
  const sandbox = createSandbox({ clock: 'manual' });
  await create(sandbox, 'before');
  const told = await follow(sandbox);
  expect(told[0]).toMatchObject({
    facts: { balance: { balanceTokens: 985 } },
    lists: { jobs: { rows: [{ status: 'processing' }] } },
  });
  const seen = told.length;
  await create(sandbox, 'after');
  await vi.waitFor(() => expect(told.length).toBeGreaterThan(seen));
  const change = told.at(-1);
  expect(change?.lists?.jobs?.keys).toHaveLength(2);
  expect(change?.lists?.jobs?.rows).toHaveLength(1);
  expect(Object.keys(change?.lists ?? {}).sort()).toEqual(['jobs', 'ledger', 'requests']);
  expect(change?.facts).toMatchObject({ balance: { balanceTokens: 970 }, counts: { total: 2, processing: 2 } });
});

it('gathers a burst into few messages', async () => {
  const sandbox = createSandbox({ clock: 'manual', limits: 'off', balanceTokens: 1e6 });
  const told = await follow(sandbox);
  const seen = told.length;
  await Promise.all(Array.from({ length: 200 }, () => create(sandbox)));
  await vi.waitFor(() => expect(told.at(-1)?.facts?.counts.total).toBe(200));
  expect(told.length - seen).toBeLessThan(20);
});

it('keeps no messages for a page that reads slowly: it gets the last state when it reads again', async () => {
  const sandbox = createSandbox({ clock: 'manual', limits: 'off', balanceTokens: 1e6 });
  const controller = new AbortController();
  open.push(controller);
  const { signal } = controller;
  const response = await sandbox.handle(new Request(`${sandbox.baseUrl}/_sandbox/events`, { signal }));
  const reader = response.body?.getReader();
  await reader?.read();
  for (let burst = 0; burst < 6; burst++) {
    await create(sandbox);
    await new Promise((done) => setTimeout(done, 80));
  }
  const totals: (number | undefined)[] = [];
  while (totals.at(-1) !== 6) {
    const { value } = (await reader?.read()) ?? {};
    const change: Change = JSON.parse(new TextDecoder().decode(value).replace(/^data: /, ''));
    totals.push(change.facts?.counts.total);
  }
  // The one that was waiting to be read, and the one with all that came after it.
  expect(totals).toEqual([1, 6]);
});

it('lets jobs end on time on the real clock, though nobody asks', async () => {
  const sandbox = createSandbox({ jobDurationMs: 150 });
  const told = await follow(sandbox);
  await create(sandbox);
  await vi.waitFor(() => expect(told.at(-1)?.lists?.jobs?.rows[0]?.status).toBe('completed'), { timeout: 3000 });
});

it('shows the jobs of one kind only, when asked for them', async () => {
  const sandbox = createSandbox({ clock: 'manual' });
  await create(sandbox, '[fail:generation_failed]');
  await create(sandbox, 'a fox');
  await sandbox.advance(3000);
  const [ended] = await follow(sandbox, '?status=ended');
  expect(ended?.lists?.jobs?.rows).toMatchObject([{ status: 'failed' }]);
});

it('leaves nothing behind when its reader goes, and lets a server close at once', async () => {
  vi.useFakeTimers();
  try {
    const sandbox = createSandbox();
    const response = await sandbox.fetch(`${sandbox.baseUrl}/_sandbox/events`);
    await create(sandbox);
    expect(vi.getTimerCount()).toBeGreaterThan(0);
    await response.body?.cancel();
    await sandbox.advance(10_000);
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
  const server = await createSandbox().listen();
  const stream = await fetch(`${server.url}/_sandbox/events`);
  expect(stream.status).toBe(200);
  const started = performance.now();
  await server.close();
  expect(performance.now() - started).toBeLessThan(1000);
  await expect(stream.text()).rejects.toThrow();
});
