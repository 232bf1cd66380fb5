// How often a job is read, and what its reads teach about the length of jobs; the time is an argument.
import { describe, expect, it } from 'vitest';
import type { Job } from '../../src/schemas/job.js';
import { JobLengths } from '../../src/store/facts.js';
import { ReadQueue } from '../../src/waiting/read-queue.js';
import { type Entry, HEARD, JobRhythms, type JobSubscriber } from '../../src/waiting/waited-job.js';
import { virtualClock } from './virtual-clock.js';

const NOW = Date.UTC(2026, 0, 1);
const ago = (ms: number) => new Date(NOW - ms).toISOString();
const running = (fields: Partial<Job> = {}): Job => ({ id: 'a', status: 'processing', mediaType: 'video', ...fields });
const completed = (fields: Partial<Job> = {}): Job => ({
  ...running(fields),
  status: 'completed',
  providerOutputUrl: 'https://service.test/output',
});

/** Rhythms whose random part is the middle of its range: a video is read every 11 s. */
function setUp(classes: Readonly<Record<string, string>> = {}) {
  const learned: [string, number][] = [];
  const lengths = new JobLengths(undefined);
  const learn = lengths.learn.bind(lengths);
  lengths.learn = (key, ms) => {
    learned.push([key, ms]);
    learn(key, ms);
  };
  lengths.classOf = (id) => classes[id];
  const rhythms = new JobRhythms(virtualClock(NOW), () => 0.5, lengths);
  return { rhythms, lengths, learned };
}

function subscriberOf(entry: Entry, pollIntervalMs?: number): JobSubscriber {
  const queue = new ReadQueue<Entry>('documented', NOW);
  const wait = { wake() {} };
  const subscriber = {
    entry,
    queue,
    wait,
    pollIntervalMs,
    share: undefined,
    version: 0,
    askedMs: NOW,
  };
  entry.subscribers.push(subscriber);
  return subscriber;
}

describe('the first read of a job', () => {
  it.each<[string, Job | undefined, number | undefined, number]>([
    ['that is new is due when it may be done', running(), undefined, 11_000],
    ['that is an image is due sooner', running({ mediaType: 'image' }), undefined, 2_200],
    ['of which only the id is known is due at once', undefined, undefined, 0],
    ['that was created a while ago is due the sooner', running({ createdAt: ago(4_000) }), undefined, 7_000],
    [
      'whose creation is in the future, by a clock that is wrong, is due as a new one',
      running({ createdAt: ago(-9_000) }),
      undefined,
      11_000,
    ],
    ['whose creation cannot be read is due as a new one', running({ createdAt: 'yesterday' }), undefined, 11_000],
    ['with an interval of its own keeps to it', running({ createdAt: ago(4_000) }), 1_500, 1_500],
  ])('%s', (_, job, pollIntervalMs, inMs) => {
    const { rhythms } = setUp();
    expect(rhythms.entryOf('a', job, NOW, pollIntervalMs).dueMs - NOW).toBe(inMs);
  });

  it('takes no job for older than an hour', () => {
    const { rhythms } = setUp();
    const sinceMs = (ms: number) => NOW - rhythms.entryOf('a', running({ createdAt: ago(ms) }), NOW, undefined).sinceMs;
    expect([sinceMs(0), sinceMs(60_000), sinceMs(3_599_000), sinceMs(86_400_000)]).toEqual([
      0, 60_000, 3_599_000, 3_600_000,
    ]);
  });
});

describe('the interval between reads', () => {
  it('is the shortest that a wait on the job asks for, also where that is longer than usual', () => {
    const { rhythms } = setUp();
    const entry = rhythms.entryOf('a', running(), NOW, undefined);
    subscriberOf(entry);
    expect(rhythms.intervalMs(entry)).toBe(11_000);
    subscriberOf(entry, 40_000);
    expect(rhythms.intervalMs(entry)).toBe(40_000);
    subscriberOf(entry, 700);
    subscriberOf(entry, 900);
    expect(rhythms.intervalMs(entry)).toBe(700);
  });

  it('of a job that is announced as ended grows from 1 s, and is never longer than usual', () => {
    const { rhythms } = setUp();
    const entry = rhythms.entryOf('a', running(), NOW, undefined);
    const intervals = (left: readonly number[]) =>
      left.map((eager) => {
        entry.eager = eager;
        return rhythms.intervalMs(entry);
      });
    expect(intervals([4, 3, 2, 1, 0])).toEqual([1_000, 2_000, 4_000, 8_000, 11_000]);
    subscriberOf(entry, 3_000);
    expect(intervals([4, 3, 2, 1, 0])).toEqual([1_000, 2_000, 3_000, 3_000, 3_000]);
  });

  it('doubles while webhooks announce the ends of jobs, and is the usual one again when they stop', () => {
    const { rhythms } = setUp();
    const open = rhythms.entryOf('open', running(), NOW, undefined);
    const end = (isAnnounced: boolean) => {
      const entry = rhythms.entryOf('a', running(), NOW, undefined);
      if (isAnnounced) {
        entry.heard = HEARD.hint;
        rhythms.announced();
      }
      rhythms.seen(entry, running(), NOW);
      rhythms.seen(entry, { ...running(), status: 'failed' }, NOW);
      return rhythms.intervalMs(open);
    };
    expect([true, true, true].map(end)).toEqual([11_000, 22_000, 22_000]);
    expect([false, false].map(end)).toEqual([11_000, 11_000]);
    expect([false, true, true].map(end)).toEqual([11_000, 11_000, 22_000]);
  });

  it('follows what the first read says of the job', () => {
    const { rhythms } = setUp();
    const entry = rhythms.entryOf('a', undefined, NOW, undefined);
    expect(rhythms.intervalMs(entry)).toBe(11_000);
    rhythms.seen(entry, running({ mediaType: 'image' }), NOW);
    expect(rhythms.intervalMs(entry)).toBe(2_750);
    rhythms.seen(entry, running({ mediaType: 'video' }), NOW);
    expect(rhythms.intervalMs(entry)).toBe(11_000);
  });
});

describe('a completed job teaches its length', () => {
  const learnedFrom = (job: Job, { isKnown = true, afterMs = 50_000, classes = {} } = {}) => {
    const { rhythms, learned } = setUp(classes);
    const entry = rhythms.entryOf('a', isKnown ? running() : undefined, NOW, undefined);
    rhythms.seen(entry, job, NOW + afterMs);
    return learned;
  };

  it.each<[string, Job, object, [string, number][]]>([
    ['from its two times', completed({ createdAt: ago(90_000), completedAt: ago(0) }), {}, [['video/', 90_000]]],
    ['of no time at all', completed({ createdAt: ago(0), completedAt: ago(0) }), {}, [['video/', 0]]],
    ['by the wait where it has no times', completed(), {}, [['video/', 50_000]]],
    ['by the wait where it has one time', completed({ completedAt: ago(0) }), {}, [['video/', 50_000]]],
    [
      'by the wait where its times are in the wrong order',
      completed({ createdAt: ago(0), completedAt: ago(9) }),
      {},
      [['video/', 50_000]],
    ],
    [
      'by its age where only its id was known',
      completed({ createdAt: ago(20_000) }),
      { isKnown: false, afterMs: 0 },
      [['video/', 20_000]],
    ],
    [
      'for its model, and for its class where its create is known',
      completed({ modelId: 'svc-video-mini' }),
      { classes: { a: 'mini 5 s' } },
      [
        ['video/svc-video-mini', 50_000],
        ['mini 5 s', 50_000],
      ],
    ],
    ['and one that failed does not', { ...completed(), status: 'failed' }, {}, []],
    ['and one that runs does not', running({ createdAt: ago(90_000), completedAt: ago(0) }), {}, []],
    ['and one without its file does not', { ...running(), status: 'completed' }, {}, []],
  ])('%s', (_, job, more, expected) => {
    expect(learnedFrom(job, more)).toEqual(expected);
  });
});

describe('how far a job is', () => {
  it('is told by the length of its class, or else of its model, and never falls', () => {
    const { rhythms, lengths } = setUp({ a: 'mini 5 s' });
    const entry = rhythms.entryOf('a', running(), NOW, undefined);
    const subscriber = subscriberOf(entry);
    const at = (ms: number) => rhythms.progressOf(subscriber, running(), NOW + ms);
    lengths.learn('video/', 10_000);
    expect(at(5_000)).toEqual({ share: undefined, etaMs: undefined });
    lengths.learn('mini 5 s', 100_000);
    expect(at(50_000)).toEqual({ share: 0.5, etaMs: 50_000 });
    expect(at(40_000)).toEqual({ share: 0.5, etaMs: 60_000 });
    expect(rhythms.progressOf(subscriber, completed(), NOW + 60_000)).toEqual({ share: 1, etaMs: 0 });
    const other = rhythms.entryOf('b', running(), NOW, undefined);
    expect(rhythms.progressOf(subscriberOf(other), running(), NOW + 5_000)).toEqual({ share: 0.5, etaMs: 5_000 });
  });

  it('counts from the creation, once a read has shown it', () => {
    const { rhythms, lengths } = setUp();
    lengths.learn('video/', 100_000);
    const entry = rhythms.entryOf('a', undefined, NOW, undefined);
    const job = running({ createdAt: ago(20_000) });
    rhythms.seen(entry, job, NOW);
    expect(rhythms.progressOf(subscriberOf(entry), job, NOW)).toEqual({ share: 0.2, etaMs: 80_000 });
    rhythms.seen(entry, running({ createdAt: ago(0) }), NOW);
    expect(rhythms.progressOf(subscriberOf(entry), job, NOW)).toEqual({ share: 0.2, etaMs: 80_000 });
  });

  it('is unknown where nothing learns lengths', () => {
    const rhythms = new JobRhythms(virtualClock(NOW), () => 0.5, undefined);
    const entry = rhythms.entryOf('a', running(), NOW, undefined);
    rhythms.seen(entry, running(), NOW + 1_000);
    expect(rhythms.progressOf(subscriberOf(entry), running(), NOW)).toEqual({ share: undefined, etaMs: undefined });
    expect(() => rhythms.seen(entry, completed(), NOW + 2_000)).not.toThrow();
  });
});
