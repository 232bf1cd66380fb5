// The line of calls that wait for their create, step by step, on a real Redis. Where no engine gives turns, the test does.
import { type Job, Queue, Worker, type WorkerOptions } from 'bullmq';
import { type ClientOptions, GenClient } from 'gen-client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { queueNames } from '../../src/adapters/bullmq/connection.js';
import { type CreateTurn, enterLine, needsTurn, openCreates } from '../../src/adapters/bullmq/creates.js';
import { freePort } from '../support/free-port.js';
import { noRedis, queuesOnSandboxes } from './queue-on-sandbox.js';

const MINUTE_MS = 60_000;
const never = new AbortController().signal;
/** A call as the line sees it. */
const call = (id: string, more: { priority?: number; hadTurn?: boolean } = {}) =>
  ({ id, opts: { priority: more.priority }, data: more.hadTurn ? { run: {} } : {} }) as never;

describe.skipIf(noRedis !== undefined)('the line of calls that wait for their create', () => {
  const { redis } = queuesOnSandboxes();
  const opened: (() => Promise<void>)[] = [];
  let names = 0;
  afterEach(async () => {
    vi.useRealTimers();
    for (const close of opened.splice(0).reverse()) await close();
  });

  /** Opens a line. Nobody gives turns in it unless the engine is told to run. */
  function open({ worker = {}, client = {} }: { worker?: Partial<WorkerOptions>; client?: ClientOptions } = {}) {
    names += 1;
    const connection = { host: '127.0.0.1', port: redis().port };
    const at = queueNames(connection, { name: `line-${names}` });
    const calls = new Queue(at.calls, at.options);
    const turns = new Queue<CreateTurn>(at.creates, at.options);
    const line = openCreates({
      names: at,
      calls,
      client: new GenClient({ apiKey: 'sk_test', baseUrl: 'https://service.test', ...client }),
      worker: { autorun: false, ...worker },
      onError: ({ message }) => expect.unreachable(message),
    });
    const hand = new Worker<CreateTurn>(at.creates, null, at.options);
    opened.push(
      () => calls.close(),
      () => turns.close(),
      () => line.close(),
      () => hand.close(),
    );
    /** The turn of the first call comes. */
    const give = async (): Promise<Job<CreateTurn>> => {
      const turn = await hand.getNextJob('hand');
      if (!turn) throw new Error('nobody is in line');
      return turn;
    };
    /** The turn of the first call has come, and its call was woken. */
    const given = async () => {
      const turn = await give();
      await turn.moveToCompleted(null, 'hand', false);
      return turn.id;
    };
    return { line, calls, turns, give, given, limit: async (ms: number) => void (await turns.rateLimit(ms)) };
  }

  it('takes a call in once, under its own id and priority, and first if it has had its turn before', async () => {
    const { line, turns, limit } = open();
    await limit(MINUTE_MS);
    const admitted = [
      await line.admit(call('late', { priority: 7 }), never),
      await line.admit(call('late', { priority: 7 }), never),
      await line.admit(call('plain'), never),
      await line.admit(call('again', { priority: 7, hadTurn: true }), never),
    ];
    expect(admitted).toEqual([false, false, false, false]);
    const [first, ...rest] = await turns.getJobs(['waiting', 'prioritized']);
    expect([first, ...rest].map((turn) => [turn?.id, turn?.opts.priority]).sort()).toEqual([
      ['again', 0],
      ['late', 7],
      ['plain', 0],
    ]);
    expect(first?.data).toEqual({ version: 1 });
  });

  it('is left alone by a call that has had its turn', async () => {
    const { line, turns, limit, given } = open();
    await enterLine(turns, 'order-1', 0);
    expect(await given()).toBe('order-1');
    await limit(MINUTE_MS);
    expect(await line.admit(call('order-1'), never)).toBe(true);
    expect(await turns.getJobCountByTypes('waiting', 'prioritized')).toBe(0);
  });

  it('lets a call wait for a turn that comes within two seconds', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const { line, turns, given } = open();
    const admitted = line.admit(call('order-1'), never);
    await expect.poll(() => turns.getJob('order-1')).toBeDefined();
    await given();
    expect(await admitted).toBe(true);
  });

  it.each([
    [3, true],
    [4, false],
  ])('of %i calls is short enough to wait in: %s', async (length, isWaitedIn) => {
    const { line, turns } = open();
    for (let at = 1; at < length; at++) await enterLine(turns, `other-${at}`, at % 2);
    const startMs = performance.now();
    expect(await line.admit(call('order-1'), never)).toBe(false);
    expect(performance.now() - startMs > 1_900).toBe(isWaitedIn);
  });

  it('is not waited in while the rate limit is full', async () => {
    const { line, limit } = open();
    await limit(MINUTE_MS);
    const startMs = performance.now();
    expect(await line.admit(call('order-1'), never)).toBe(false);
    expect(performance.now() - startMs).toBeLessThan(1_900);
  });

  it('ends a wait with its signal', async () => {
    const { line } = open();
    const abort = new AbortController();
    const admitted = line.admit(call('order-1'), abort.signal);
    abort.abort(new Error('closing'));
    await expect(admitted).rejects.toThrow('closing');
  });

  it('knows whether a turn has come', async () => {
    const { line, turns, give } = open();
    expect(await line.hasCome('order-1')).toBe(false);
    await enterLine(turns, 'order-1', 0);
    expect(await line.hasCome('order-1')).toBe(false);
    await give();
    expect(await line.hasCome('order-1')).toBe(true);
  });

  it('forgets the turn of a call that has used it, and counts it', async () => {
    const { line, turns, limit, given } = open();
    await enterLine(turns, 'order-1', 0);
    await given();
    await limit(MINUTE_MS);
    await line.leave('order-1');
    expect(await turns.getJob('order-1')).toBeUndefined();
    expect(await turns.getRateLimitTtl(1)).toBeGreaterThan(0);
  });

  it('gives a turn that was not used to another call at once', async () => {
    const { line, turns, limit, given } = open();
    await enterLine(turns, 'order-1', 0);
    await given();
    await limit(MINUTE_MS);
    await line.giveBack('order-1');
    expect(await turns.getJob('order-1')).toBeUndefined();
    expect(await turns.getRateLimitTtl(1)).toBeLessThanOrEqual(0);
  });

  it('is held for as long as the service says, and then gives its first turn to the call that was refused', async () => {
    const { line, turns, given } = open();
    await enterLine(turns, 'order-1', 5);
    await enterLine(turns, 'order-2', 5);
    await given();
    await line.hold('order-1', MINUTE_MS);
    const ttl = await turns.getRateLimitTtl(1);
    expect([ttl > MINUTE_MS - 10_000, ttl <= MINUTE_MS]).toEqual([true, true]);
    await turns.removeRateLimitKey();
    expect(await given()).toBe('order-1');
  });

  it('wakes calls that have not taken their turn for two seconds, behind those that are awake', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const { line, calls, turns, given } = open();
    const asleep = { delay: 24 * 60 * MINUTE_MS };
    await calls.add('videos', {}, { jobId: 'asleep', ...asleep });
    await calls.add('videos', { trouble: 'no_tokens' }, { jobId: 'in-trouble', ...asleep });
    await calls.add('videos', {}, { jobId: 'awake' });
    for (const id of ['asleep', 'in-trouble', 'removed', 'awake']) await enterLine(turns, id, 0);
    for (let at = 0; at < 4; at++) await given();
    vi.setSystemTime(Date.now() + 2_000);
    await line.remind();
    const kept = async () => (await turns.getCompleted()).map(({ id }) => id).sort();
    expect([await kept(), await calls.getDelayedCount()]).toEqual([['asleep', 'awake', 'in-trouble', 'removed'], 2]);

    vi.setSystemTime(Date.now() + 1);
    await line.remind();
    expect(await kept()).toEqual(['asleep', 'awake', 'in-trouble']);
    expect((await calls.getDelayed()).map(({ id }) => id)).toEqual(['in-trouble']);
    expect((await calls.getJobs(['waiting'], 0, -1, true)).map(({ id }) => id)).toEqual(['awake', 'asleep']);
  });

  it('drops the turns of calls that have ended', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const { line, calls, turns, given } = open();
    await calls.add('videos', {}, { jobId: 'order-1' });
    const worker = new Worker(calls.name, null, { connection: calls.opts.connection });
    opened.push(() => worker.close());
    await (await worker.getNextJob('lock'))?.moveToCompleted(null, 'lock', false);
    await enterLine(turns, 'order-1', 0);
    await given();
    vi.setSystemTime(Date.now() + 2_001);
    await line.remind();
    expect(await turns.getCompletedCount()).toBe(0);
  });

  it('drops turns that nobody has taken for an hour, however many they are', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const { line, turns } = open({ worker: { autorun: true }, client: { rateLimit: 'off' } });
    await turns.addBulk(
      Array.from({ length: 1_001 }, (_, at) => ({
        name: 'create',
        data: { version: 1 as const },
        opts: { jobId: `removed-${at}` },
      })),
    );
    await expect.poll(() => turns.getCompletedCount(), { timeout: 100_000 }).toBe(1_001);
    vi.setSystemTime(Date.now() + 60 * MINUTE_MS - 120_000);
    await line.clean();
    expect(await turns.getCompletedCount()).toBe(1_001);
    vi.setSystemTime(Date.now() + 120_001);
    await line.clean();
    expect(await turns.getCompletedCount()).toBe(0);
  }, 150_000);

  it('gives turns at the pace of the limit, and those of calls that are gone without counting them', async () => {
    const limits = { 'videos.create': { limit: 1, windowMs: MINUTE_MS } };
    const { calls, turns } = open({ worker: { autorun: true }, client: { limits } });
    await enterLine(turns, 'removed', 0);
    await expect.poll(() => turns.getCompletedCount()).toBe(1);
    await expect.poll(() => turns.getRateLimitTtl(1)).toBeLessThanOrEqual(0);
    for (const id of ['order-1', 'order-2']) {
      await calls.add('videos', {}, { jobId: id, delay: 24 * 60 * MINUTE_MS });
      await enterLine(turns, id, 0);
    }
    await expect.poll(() => turns.getCompletedCount()).toBe(2);
    expect((await calls.getDelayed()).map(({ id }) => id)).toEqual(['order-2']);
    // The engine's window is one part in a hundred and 0.3 s longer than the client's.
    const ttl = await turns.getRateLimitTtl(1);
    expect([ttl > MINUTE_MS - 10_000, ttl <= MINUTE_MS * 1.01 + 300]).toEqual([true, true]);
  });

  it('has videos in it, and nothing else', () => {
    const kinds = ['videos', 'images', 'characters', 'videoEdits'] as const;
    expect(kinds.filter((kind) => needsTurn(kind as never))).toEqual(['videos']);
  });
});

describe('a line whose Redis is away', () => {
  it('prints nothing, and tells onError', async () => {
    const print = vi.spyOn(console, 'error').mockImplementation(() => {});
    const errors: string[] = [];
    const connection = { host: '127.0.0.1', port: await freePort(), retryStrategy: () => 50 };
    const at = queueNames(connection, { name: 'away' });
    const calls = new Queue(at.calls, at.options);
    calls.on('error', () => {});
    const client = new GenClient({ apiKey: 'sk_test' });
    const onError = (error: Error) => void errors.push(error.message);
    openCreates({ names: at, calls, client, worker: undefined, onError });
    await expect.poll(() => errors.length).toBeGreaterThan(1);
    expect(print).not.toHaveBeenCalled();
    print.mockRestore();
  });
});
