// tRPC and MCP with their real packages, an in-memory transport, and a fake clock.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ROOT } from '../support/build.js';
import { serveApps, stopServing } from './service.js';

const realTimeout = globalThis.setTimeout;
let sandbox = serveApps();

beforeEach(() => {
  vi.useFakeTimers();
  sandbox = serveApps({ jobDurationMs: 30_000 });
});
afterEach(() => {
  vi.useRealTimers();
  vi.resetModules();
  stopServing();
});

/** Advances the clock until the promise settles. */
async function advanceUntilSettled<T>(promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const settle = () => {
    isSettled = true;
  };
  promise.then(settle, settle);
  while (!isSettled) {
    await vi.advanceTimersByTimeAsync(1_000);
    // The disk needs real time.
    await new Promise((resolve) => realTimeout(resolve, 2));
  }
  return promise;
}

describe('tRPC', () => {
  const callerOf = async (userId: string) => {
    const { appRouter } = await import('../../examples/apps/trpc.js');
    return appRouter.createCaller({ userId });
  };

  test('a mutation creates a video, and a subscription reports its progress until it ends', async () => {
    const ann = await callerOf('ann');
    const id = await advanceUntilSettled(ann.makeVideo({ prompt: 'a fox at dawn', duration: 5 }));
    const updates: string[] = [];
    const watch = async () => {
      for await (const { status, progress = 0 } of await ann.progress(id)) updates.push(`${status} ${progress >= 1}`);
    };
    await advanceUntilSettled(watch());
    expect(updates.at(-1)).toBe('completed true');
    expect(updates.length).toBeGreaterThan(1);
    const progress = await (await callerOf('bob')).progress(id);
    await expect(progress[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('invalid input and a service error have different codes', async () => {
    const ann = await callerOf('ann');
    await expect(advanceUntilSettled(ann.makeVideo({ prompt: '' }))).rejects.toMatchObject({ code: 'BAD_REQUEST' });
    const log = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    sandbox.faults.add({ match: { path: '/v1/videos' }, status: 402, code: 'insufficient_balance' });
    await expect(advanceUntilSettled(ann.makeVideo({ prompt: 'a fox' }))).rejects.toMatchObject({
      code: 'PAYMENT_REQUIRED',
    });
    expect(log).toHaveBeenCalledOnce();
    log.mockRestore();
  });
});

describe('MCP', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gen-client-mcp-'));
  beforeEach(() => vi.stubEnv('VIDEO_FOLDER', folder));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Connects a client, as an agent in a conversation. */
  const connect = async (sessionId?: string) => {
    const { videoServer } = await import('../../examples/apps/mcp.js');
    const [clientEnd, serverEnd] = InMemoryTransport.createLinkedPair();
    if (sessionId !== undefined) serverEnd.sessionId = sessionId;
    const client = new Client({ name: 'test', version: '1.0.0' });
    await Promise.all([videoServer().connect(serverEnd), client.connect(clientEnd)]);
    const call = async (name: string, args: Record<string, unknown>) => {
      const { content, isError = false } = await advanceUntilSettled(client.callTool({ name, arguments: args }));
      const [{ text }] = content as [{ readonly text: string }];
      return { text, isError };
    };
    /** Polls the status until there is a file or an error. */
    const outcome = async (id: string) => {
      for (let polls = 1; ; polls++) {
        const response = await call('video_status', { id });
        if (!response.text.endsWith('Call video_status again.')) return { ...response, polls };
      }
    };
    return { client, call, outcome };
  };
  const FOX = { prompt: 'a fox at dawn', duration: 5 };
  const creates = () => sandbox.requests.filter(({ method }) => method === 'POST');

  test('an agent whose client times out twice pays once for three requests, and gets its video', async () => {
    const { call, outcome } = await connect('chat-1');
    const log = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    // The service takes two minutes to respond, but the agent's client waits only one.
    sandbox.faults.add({ match: { method: 'POST', path: '/v1/videos' }, latencyMs: 120_000, times: 2 });
    await expect(call('make_video', FOX)).rejects.toThrow('Request timed out');
    await expect(call('make_video', { duration: 5, prompt: FOX.prompt })).rejects.toThrow('Request timed out');
    log.mockRestore();
    const { text, isError } = await call('make_video', FOX);
    const [job] = sandbox.jobs;
    expect([text, isError]).toEqual([`Video ${job?.id} was created. Call video_status for its file.`, false]);
    const { text: ready } = await outcome(job?.id ?? '');
    const [, path = ''] = /^Video \S+ is ready: (.+)$/.exec(ready) ?? [];
    expect(statSync(path).size).toBeGreaterThan(100);
    expect((await call('make_video', FOX)).text).toContain(job?.id);
    expect((await outcome(job?.id ?? '')).text).toBe(ready);
    expect(sandbox.jobs).toHaveLength(1);
    expect(new Set(creates().map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
    expect(sandbox.ledger().spentTokens).toBe(job?.quotedTokenCost);
  });

  test('make_video returns immediately, and video_status within twenty seconds', async () => {
    sandbox.outcomes.next({ durationMs: 45_000 });
    const { call, outcome } = await connect('chat-1');
    const startMs = Date.now();
    await call('make_video', FOX);
    expect(Date.now() - startMs).toBeLessThan(2_000);
    expect((await outcome(sandbox.jobs[0]?.id ?? '')).polls).toBe(3);
  });

  test('other params and other conversations create separate videos, which other conversations cannot see', async () => {
    const [first, second] = [await connect('chat-1'), await connect('chat-2')];
    await first.call('make_video', FOX);
    await first.call('make_video', { ...FOX, duration: 6 });
    await second.call('make_video', FOX);
    expect(sandbox.jobs).toHaveLength(3);
    const id = sandbox.jobs[0]?.id ?? '';
    const notFound = { text: `This conversation has no video ${id}.`, isError: true };
    expect(await second.call('video_status', { id })).toEqual(notFound);
  });

  test("an agent can't exceed its budget", async () => {
    const { call } = await connect();
    const responses: string[] = [];
    for (let index = 0; index < 30; index++)
      responses.push((await call('make_video', { ...FOX, prompt: `fox ${index}` })).text);
    expect(responses.at(-1)).toBe('The budget for generation is used up.');
    const reserved = sandbox.jobs.reduce((sum, job) => sum + Number(job.quotedTokenCost), 0);
    expect(reserved).toBeLessThanOrEqual(300);
    expect(reserved).toBeGreaterThan(200);
  });

  test('fields have descriptions, and failures are results with a fix', async () => {
    const { client, call, outcome } = await connect('chat-1');
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['make_video', 'video_status']);
    expect(tools[0]?.inputSchema.properties).toMatchObject({
      duration: { description: expect.stringContaining('svc-video-fast: 4, 5, 6') },
    });
    expect(await call('make_video', { prompt: 'a fox', duration: 99 })).toMatchObject({ isError: true });
    expect(sandbox.jobs).toHaveLength(0);
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
    await call('make_video', { prompt: 'something forbidden' });
    expect(await outcome(sandbox.jobs[0]?.id ?? '')).toMatchObject({
      isError: true,
      text: expect.stringMatching(/generation_rejected.* To try again, change the prompt\.$/),
    });
  });
});

test('both examples compile', async () => {
  vi.useRealTimers();
  const compiler = join(ROOT, 'node_modules/@typescript/native/bin/tsc');
  const compiled = promisify(execFile)(process.execPath, [compiler, '-p', join(ROOT, 'test/apps')], { cwd: ROOT });
  expect(await compiled.catch((failure: { stdout: string }) => failure)).toMatchObject({ stdout: '' });
});
