// What resume() hands to its waits, what it writes into the journal, and how it ends.
import { describe, expect, it } from 'vitest';
import type { Job, JournalEntry } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { type ResumeOptions, type ResumePorts, resumeJobs } from '../../src/waiting/job-iterables.js';
import type { WaitOptions } from '../../src/waiting/wait-options.js';
import { countedSignal, rejection } from '../transport/support.js';
import { settle } from '../waiting/virtual-clock.js';

const AT = '2026-01-01T00:00:00.000Z';
const LINK = 'https://service.test/output';
const opened = (key: string): JournalEntry => ({ key, call: 'images', params: { prompt: key }, at: AT });
/** The entries of a create whose job runs: key k1 has job j1. */
const accepted = (...numbers: number[]): JournalEntry[] =>
  numbers.flatMap((at) => [opened(`k${at}`), { phase: 'accepted', key: `k${at}`, jobId: `j${at}`, at: AT }]);

/** A journal with these entries, and a service whose jobs end as told; one of which nothing is told never ends. */
function setUp(entries: readonly JournalEntry[], ends: Record<string, Partial<Job> | Error> = {}) {
  const appended: JournalEntry[] = [];
  const waits: { id: string; options: WaitOptions }[] = [];
  const creates: { key: string; signal: AbortSignal }[] = [];
  const ports: ResumePorts = {
    journal: { append: (entry) => void appended.push(entry), entries: () => entries },
    create: async ({ key }, signal) => {
      creates.push({ key, signal });
      if (key === 'hangs') await new Promise(() => {});
      return { job: { id: `j-${key}`, status: 'processing' }, warnings: [], idempotencyKey: key };
    },
    waitForJob: async (job, options) => {
      const id = typeof job === 'string' ? job : job.id;
      waits.push({ id, options });
      const end = ends[id];
      if (end === undefined) await new Promise(() => {});
      if (end instanceof Error) throw end;
      return { id, status: 'completed', providerOutputUrl: LINK, ...end };
    },
  };
  const seen: string[] = [];
  const resume = async (options?: ResumeOptions, onJob: (id: string) => void = () => {}) => {
    for await (const { id } of resumeJobs(ports, options)) {
      seen.push(id);
      onJob(id);
    }
  };
  return { resume, ports, appended, waits, creates, seen };
}

describe('resume', () => {
  it('writes the end of each job that did not complete before it yields it, and of no other', async () => {
    const { resume, appended, seen } = setUp(accepted(1, 2, 3), {
      j1: { status: 'failed', errorCode: 'generation_rejected' },
      j2: { status: 'canceled', errorCode: null },
      j3: {},
    });
    const writtenAt: number[] = [];
    await resume({}, () => writtenAt.push(appended.length));
    expect(seen.sort()).toEqual(['j1', 'j2', 'j3']);
    expect(appended).toStrictEqual([
      {
        phase: 'final',
        jobId: 'j1',
        key: 'k1',
        status: 'failed',
        errorCode: 'generation_rejected',
        at: expect.stringMatching(/^\d{4}-/),
      },
      { phase: 'final', jobId: 'j2', key: 'k2', status: 'canceled', at: expect.stringMatching(/^\d{4}-/) },
    ]);
    expect(writtenAt.every((count) => count > 0)).toBe(true);
  });

  it('waits with its options, and does not take a failed job for a failure', async () => {
    const { resume, waits, creates } = setUp([...accepted(1), opened('new')], {
      j1: {},
      'j-new': { status: 'failed' },
    });
    const options = { timeoutMs: 5_000, pollIntervalMs: 700, onUpdate: () => {} } as const;
    await resume(options);
    expect(creates.map(({ key }) => key)).toEqual(['new']);
    expect(waits.map(({ id }) => id)).toEqual(['j1', 'j-new']);
    for (const wait of waits) expect(wait.options).toMatchObject({ ...options, throwOnFailure: false });
    const signals = [creates[0]?.signal, ...waits.map(({ options: { signal } }) => signal)];
    expect(signals.map((signal) => signal?.aborted)).toEqual([true, true, true]);
  });

  it.each<[object, string]>([
    [{ pollIntervalMS: 5 }, 'resume has no option "pollIntervalMS". Did you mean "pollIntervalMs"?'],
    [{ timeoutMs: 0 }, 'timeoutMs must be a positive number of milliseconds, or false for no limit, not 0.'],
  ])('refuses %o before the journal is read', async (options, message) => {
    const { ports } = setUp([]);
    const unread = { ...ports, journal: { append() {}, entries: () => expect.unreachable() } };
    await expect(resumeJobs(unread, options).next()).rejects.toThrow(message);
    const signal = AbortSignal.abort('enough');
    expect(await rejection(resumeJobs(unread, { signal }).next())).toBe('enough');
  });

  it('throws what one job could not be resumed for, and the errors of several together, after the others', async () => {
    const [one, two] = [new Error('one'), new Error('two')];
    const single = setUp(accepted(1, 2), { j1: one, j2: {} });
    expect(await rejection(single.resume())).toBe(one);
    expect(single.seen).toEqual(['j2']);
    const both = setUp(accepted(1, 2, 3), { j1: one, j2: two, j3: {} });
    const error = await rejection(both.resume());
    expect(error).toBeInstanceOf(AggregateError);
    expect(error).toMatchObject({ message: '2 jobs of the journal could not be resumed.', errors: [one, two] });
    expect(both.seen).toEqual(['j3']);
  });

  it('ends at once on abort, also while a create does not answer, and leaves no listener', async () => {
    const { resume, creates, waits } = setUp([opened('hangs'), ...accepted(1)]);
    const { controller, signal, listeners } = countedSignal();
    const ended = rejection(resume({ signal }));
    await settle();
    expect([creates.length, waits.length]).toEqual([1, 1]);
    controller.abort('enough');
    expect(await ended).toBe('enough');
    expect(creates[0]?.signal.reason).toBe('enough');
    expect(waits[0]?.options.signal?.reason).toBe('enough');
    expect(listeners()).toBe(0);
  });

  it('yields no more jobs once it is aborted, also those that had ended before', async () => {
    const { resume, seen } = setUp(accepted(1, 2), { j1: {}, j2: {} });
    const controller = new AbortController();
    const ended = rejection(resume({ signal: controller.signal }, () => controller.abort('enough')));
    expect(await ended).toBe('enough');
    expect(seen).toEqual(['j1']);
  });

  it('is aborted by the last job as well', async () => {
    const { resume } = setUp(accepted(1), { j1: {} });
    const { controller, signal } = countedSignal();
    expect(await rejection(resume({ signal }, () => controller.abort('enough')))).toBe('enough');
  });

  it('ends the other waits when the loop is left, and leaves no listener', async () => {
    const { ports, waits } = setUp(accepted(1, 2), { j1: {} });
    const { signal, listeners } = countedSignal();
    for await (const { id } of resumeJobs(ports, { signal })) {
      expect(id).toBe('j1');
      expect(listeners()).toBe(1);
      break;
    }
    expect(waits.map(({ options }) => options.signal?.aborted)).toEqual([true, true]);
    expect(listeners()).toBe(0);
  });

  it('waits as long as its timeoutMs says, for each job', async () => {
    const sandbox = createSandbox({ clock: 'manual', jobDurationMs: 60_000 });
    const client = sandbox.client({ journal: { append() {}, entries: () => entries } });
    const { job } = await client.images.create({ prompt: 'a fox' });
    const entries = [opened('k1'), { phase: 'accepted' as const, key: 'k1', jobId: job.id, at: AT }];
    const ended = rejection(client.resume(undefined, { timeoutMs: 10_000 }).next());
    await sandbox.advance(10_000);
    expect(await ended).toMatchObject({ name: 'WaitTimeoutError', jobId: job.id, timeoutMs: 10_000 });
  });
});
