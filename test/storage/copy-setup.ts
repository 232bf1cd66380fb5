// A service with one file and a store that answers as it is told, both without a connection.
import { createHash } from 'node:crypto';
import { expect, vi } from 'vitest';
import type { StoredObject } from '../../src/adapters/storage/destination.js';
import { type CopyOutputOptions, copyOutput, type OutputDestination } from '../../src/adapters/storage/index.js';
import { APIError, StorageError } from '../../src/errors/index.js';
import { CLOCK } from '../../src/runtime/clock.js';
import { type VirtualClock, virtualClock } from '../waiting/virtual-clock.js';

export const FILE = new Uint8Array(1_000_000).fill(7);
const SHA256 = createHash('sha256').update(FILE).digest('hex');
export const OWN: StoredObject = {
  sizeBytes: FILE.length,
  contentType: 'video/mp4',
  etag: '"1"',
  metadata: { 'gen-job': 'job_1' },
};
export const INFO = { sizeBytes: FILE.length, contentType: 'video/mp4', etag: '"v1"' };
export const STORED = { sizeBytes: FILE.length, contentType: 'video/mp4', sha256: SHA256, etag: '"1"', existed: false };
export const EXISTED = { ...STORED, sha256: undefined, existed: true };

export const taken = (status: number) => Object.assign(new Error('It is there.'), { status });
export const storeError = (code: string, status?: number) => new StorageError('No.', { code, status, store: 'mine' });
export const apiError = (status: number, code: 'output_expired' | 'http_400') =>
  new APIError('No.', { status, code, recovery: 'change_request', method: 'GET', url: 'https://a.test' });

export type Put = OutputDestination['put'];
/** Takes the whole body, and resolves with this. */
export const answering =
  (answer: unknown): Put =>
  async (body) => {
    await new Response(body).arrayBuffer();
    return answer as { etag?: string };
  };
/** Takes the whole body and tells its tag. */
const take = answering({ etag: '"1"' });
/** Fails with an error, after it has taken the whole body or none of it. */
export const failing =
  (error: unknown, isWhole = false): Put =>
  async (body) => {
    if (isWhole) await take(body, {} as never);
    throw error;
  };

/** Gives one after the other, the last one again and again. */
function inTurn<T>(items: readonly T[]): () => T | undefined {
  let given = 0;
  return () => items[Math.min(given++, items.length - 1)];
}

/** A service with one file, and a store that answers as it is told: the last put and the last look again and again. */
export function start({
  puts = [take],
  looks = [undefined],
  hasHead = true,
}: {
  puts?: readonly Put[];
  looks?: readonly (StoredObject | undefined | null | Error)[];
  hasHead?: boolean;
} = {}) {
  const clock = virtualClock();
  const output = vi.fn(async (..._: unknown[]) => {
    const body = new Blob([FILE]).stream();
    return new Response(body, {
      headers: { 'content-length': `${FILE.length}`, 'content-type': 'video/mp4', etag: '"v1"' },
    });
  });
  const outputInfo = vi.fn(async (..._: unknown[]): Promise<object> => INFO);
  const get = vi.fn(async (id: string) => ({ id, status: 'completed' }));
  const client = { jobs: { get, output, outputInfo }, [CLOCK]: clock };
  const [nextPut, nextLook] = [inTurn(puts), inTurn(looks)];
  const put = vi.fn<Put>((body, options) => (nextPut() ?? take)(body, options));
  const head = vi.fn<NonNullable<OutputDestination['head']>>(async () => {
    const found = nextLook();
    if (found instanceof Error) throw found;
    return found as StoredObject | undefined;
  });
  const destination = { store: 'mine', put, ...(hasHead && { head }) };
  const copy = (options: CopyOutputOptions = {}) => copyOutput(client as never, 'job_1', destination, options);
  const asked = () => [put.mock.calls.length, head.mock.calls.length];
  return { clock, client, output, outputInfo, put, head, destination, copy, asked };
}

/** Lets everything go on until this holds. It needs no timer: those may be held. */
export async function until(holds: () => boolean): Promise<void> {
  const end = performance.now() + 5_000;
  while (!holds() && performance.now() < end) await new Promise(setImmediate);
  expect(holds()).toBe(true);
}

/** The outcome of the work, whose pauses pass at once. */
export async function finished<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  let isOpen = true;
  const close = () => {
    isOpen = false;
  };
  work.then(close, close);
  const end = performance.now() + 5_000;
  while (isOpen && performance.now() < end) {
    await clock.advance(clock.timers > 0 ? 10_000 : 0);
  }
  expect(isOpen).toBe(false);
  return work;
}
