// tRPC and MCP, with their own packages and an in-memory transport. The clock is fake: a job takes no time.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ROOT } from '../support/build.js';
import { serveApps } from './service.js';

let sandbox = serveApps();

beforeEach(() => {
  vi.useFakeTimers();
  sandbox = serveApps({ jobDurationMs: 30_000 });
});
afterEach(() => {
  vi.useRealTimers();
  vi.resetModules();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
});

/** Moves the time on until the promise is settled. */
async function pass<T>(promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const settled = () => {
    isSettled = true;
  };
  promise.then(settled, settled);
  while (!isSettled) await vi.advanceTimersByTimeAsync(1_000);
  return promise;
}

describe('tRPC', () => {
  const callerOf = async (userId: string) => {
    const { appRouter } = await import('../../examples/apps/trpc.js');
    return appRouter.createCaller({ userId });
  };

  test('a mutation makes a video, and a subscription tells its progress until it ends', async () => {
    const ann = await callerOf('ann');
    const id = await pass(ann.makeVideo({ prompt: 'a fox at dawn', duration: 5 }));
    const seen: string[] = [];
    const watching = (async () => {
      for await (const { status, share = 0 } of await ann.progress(id)) seen.push(`${status} ${share >= 1}`);
    })();
    await pass(watching);
    expect(seen.at(-1)).toBe('completed true');
    expect(seen.length).toBeGreaterThan(1);
    const ofBob = await (await callerOf('bob')).progress(id);
    await expect(ofBob[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('bad input and a refusal of the service have their own codes', async () => {
    const ann = await callerOf('ann');
    await expect(pass(ann.makeVideo({ prompt: '' }))).rejects.toMatchObject({ code: 'BAD_REQUEST' });
    const log = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    sandbox.faults.add({ match: { path: '/v1/videos' }, status: 402, code: 'insufficient_balance' });
    await expect(pass(ann.makeVideo({ prompt: 'a fox' }))).rejects.toMatchObject({ code: 'PAYMENT_REQUIRED' });
    expect(log).toHaveBeenCalledOnce();
    log.mockRestore();
  });
});

describe('MCP', () => {
  const connect = async () => {
    const { server } = await import('../../examples/apps/mcp.js');
    const [mine, its] = InMemoryTransport.createLinkedPair();
    const client = new Client({ name: 'test', version: '1.0.0' });
    await Promise.all([server.connect(its), client.connect(mine)]);
    return client;
  };

  test('the tool says what its fields may be, tells its progress and makes a video', async () => {
    const client = await connect();
    const { tools } = await client.listTools();
    expect(tools).toMatchObject([
      { name: 'make_video', inputSchema: { properties: { duration: { enum: expect.arrayContaining([5]) } } } },
    ]);
    const progress: number[] = [];
    const call = { name: 'make_video', arguments: { prompt: 'a fox at dawn', duration: 5 } };
    const result = await pass(
      client.callTool(call, undefined, { onprogress: ({ progress: share }) => void progress.push(share) }),
    );
    expect(result.content).toEqual([{ type: 'text', text: `Video ${sandbox.jobs[0]?.id} is ready.` }]);
    expect(progress.length).toBeGreaterThan(1);
  });

  test('a failed job and bad input are answers that the model can read', async () => {
    const client = await connect();
    const call = (args: Record<string, unknown>) => pass(client.callTool({ name: 'make_video', arguments: args }));
    expect(await call({ prompt: 'a fox', duration: 99 })).toMatchObject({ isError: true });
    expect(sandbox.jobs).toHaveLength(0);
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
    expect(await call({ prompt: 'something forbidden' })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('generation_rejected') }],
    });
  });
});

test('both compile', async () => {
  vi.useRealTimers();
  const compiler = join(ROOT, 'node_modules/@typescript/native/bin/tsc');
  const told = await promisify(execFile)(process.execPath, [compiler, '-p', join(ROOT, 'test/apps')], {
    cwd: ROOT,
  }).then(
    () => '',
    ({ stdout }: { stdout: string }) => stdout,
  );
  expect(told).toBe('');
});
