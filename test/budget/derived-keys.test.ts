import { beforeEach, describe, expect, it } from 'vitest';
import type { Budget } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { scopedBudget } from '../support/scoped-budget.js';

const file = new Blob([new Uint8Array(3_000)], { type: 'image/png' });
const params = { prompt: 'the fox runs', first_frame_upload_id: file };
const creates = { method: 'POST', path: '/v1/videos' };

let sandbox: ReturnType<typeof createSandbox>;
let budget: Budget;

/** Uploads the file, and makes the service delete the upload and repeat its rejection of the first key. */
beforeEach(async () => {
  sandbox = createSandbox({ balanceTokens: 1e6, limits: 'off', review: 'instant' });
  budget = scopedBudget({ maxTokens: 100_000 });
  await sandbox.client().videos.create(params);
  deleteUpload();
});

const deleteUpload = () =>
  sandbox.faults.add({ match: creates, status: 404, code: 'reference_upload_not_found', times: 2 });

const newClient = () => sandbox.client({ budget, maxRetries: 0 });
const create = (idempotencyKey: string) => newClient().videos.create(params, { idempotencyKey });
/** Returns the key in a create's error. */
const failedKey = (idempotencyKey: string): Promise<string> =>
  create(idempotencyKey).then(
    () => 'no error',
    (error) => error.idempotencyKey,
  );

describe('a create sent with a derived key because the service deleted its upload', () => {
  describe.each([
    ['a short key', 'order-1'],
    ['the longest key', 'k'.repeat(255)],
  ])('whose response was lost (%s)', (_, key) => {
    let errorKey = '';

    beforeEach(async () => {
      sandbox.faults.add({ match: creates, commitThenDrop: true, times: 1 });
      errorKey = await failedKey(key);
      expect([errorKey.slice(-3), (await budget.usage()).unresolved.length]).toEqual([':f1', 1]);
    });

    it.each(['the key in its error', 'the original key'])('is released by %s', async (name) => {
      await budget.release(name === 'the original key' ? key : errorKey);
      expect(await budget.usage()).toMatchObject({ unresolved: [], reservedTokens: 0, spentTokens: 0 });
    });
  });

  it('settles and counts once if it is retried with the key in its error', async () => {
    sandbox.faults.add({ match: creates, commitThenDrop: true, times: 1 });
    const errorKey = await failedKey('order-1');
    const { quoted_token_cost: spentTokens } = await create(errorKey);
    expect(await budget.usage()).toMatchObject({ unresolved: [], reservedTokens: 0, spentTokens });
    deleteUpload();
    await create('order-1');
    expect(await budget.usage()).toMatchObject({ unresolved: [], spentTokens });
    expect(sandbox.jobs).toHaveLength(2);
  });

  it("doesn't affect the reservation of a create whose key has the same suffix", async () => {
    sandbox.faults.add({ match: creates, reset: true, times: 1 });
    await failedKey('scene');
    expect((await budget.usage()).unresolved).toHaveLength(1);
    await create('scene:f2');
    await budget.release('scene:f2');
    expect((await budget.usage()).unresolved).toHaveLength(1);
  });
});
