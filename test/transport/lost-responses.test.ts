// Creates whose retry is rejected. A job may exist if the first response was lost.
import { describe, expect, it } from 'vitest';
import { createBudget } from '../../src/index.js';
import { persistentStore } from '../support/persistent-store.js';
import { virtualClock } from '../waiting/virtual-clock.js';
import { created, json, PROMPT, rejection, stubbed } from './support.js';

const lost = (): never => {
  throw new TypeError('fetch failed', { cause: Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }) });
};
const notConnected = (): never => {
  throw new TypeError('fetch failed', {
    cause: Object.assign(new Error('connect'), { code: 'ECONNREFUSED', syscall: 'connect' }),
  });
};
const invalidKey = () => json({ error: { code: 'invalid_api_key' } }, { status: 401 });
const paused = () => json({ error: { code: 'dispatch_disabled' } }, { status: 503 });
const limited = () => json({ error: { code: 'rate_limited' } }, { status: 429, headers: { 'retry-after': '3600' } });

/** Creates a video, and returns the state of the store and the budget. */
async function create(...steps: readonly (() => Response)[]) {
  const clock = virtualClock();
  const store = persistentStore();
  const budget = createBudget({ maxTokens: 100, per: 'total', store, unknownPrice: () => 10 });
  const { client, requests } = stubbed(steps, { budget, store, [Symbol.for('gen-client.clock')]: clock });
  const error = await clock.until(rejection(client.videos.create(PROMPT)));
  const { reservedTokens, unresolved } = await budget.usage();
  const phases: string[] = [];
  for await (const { phase } of client.unfinishedCreates()) phases.push(phase);
  return { error, sent: requests.length, phases, reservedTokens, unresolved: unresolved.length };
}

describe('a rejection before the idempotency key is checked', () => {
  it.each([
    ['for its API key', invalidKey],
    ['because generation is paused', paused],
    ['for the rate limit', limited],
  ])(
    'leaves the create lost in the store, and its tokens reserved, after a lost response: %s',
    async (_, rejection) => {
      const { sent, phases, reservedTokens, unresolved } = await create(lost, rejection);
      expect([sent, phases]).toEqual([2, ['lost']]);
      expect([reservedTokens, unresolved]).toEqual([10, 1]);
    },
  );

  it('leaves the same state as a retry that never connects', async () => {
    const { phases, unresolved } = await create(lost, notConnected);
    expect([phases, unresolved]).toEqual([['lost'], 1]);
  });

  it.each([
    ['for its API key', invalidKey],
    ['because generation is paused', paused],
    ['for the rate limit', limited],
  ])('closes the create if the earlier attempt never connected: %s', async (_, rejection) => {
    const { sent, phases, reservedTokens, unresolved } = await create(notConnected, rejection);
    expect([sent, phases]).toEqual([2, []]);
    expect([reservedTokens, unresolved]).toEqual([0, 0]);
  });
});

describe("a create whose upload the service doesn't know", () => {
  const notFound = () => json({ error: { code: 'upload_not_found' } }, { status: 404 });

  /** Creates two videos from one file. The second create receives `responses` before the service reports a missing upload. */
  async function countUploads(...responses: readonly (() => Response)[]): Promise<number> {
    const clock = virtualClock();
    let uploads = 0;
    let creates = 0;
    const { client } = stubbed(
      ({ method, url }) => {
        if (url.endsWith('/uploads') && method === 'POST') {
          uploads += 1;
          const upload = { upload_id: `upl_${uploads}`, direct_upload_url: 'https://storage.test/file' };
          return json({ success: true, data: upload });
        }
        if (!url.endsWith('/v1/videos')) return json({ success: true, data: {} });
        creates += 1;
        return creates === 1 ? json(created()) : (responses[creates - 2] ?? (() => json(created())))();
      },
      { [Symbol.for('gen-client.clock')]: clock },
    );
    const file = new Blob([new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])], { type: 'image/png' });
    const video = () => client.videos.create({ ...PROMPT, first_frame_upload_id: file });
    await clock.until(video());
    await clock.until(video().catch(() => undefined));
    return uploads;
  }

  it('uploads the file again if the rejection is the only response', async () => {
    expect(await countUploads(notFound)).toBe(2);
  });

  it('neither uploads nor creates again if an earlier attempt may have created a job', async () => {
    expect(await countUploads(lost, notFound)).toBe(1);
  });
});
