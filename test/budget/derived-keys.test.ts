import { beforeEach, describe, expect, it } from 'vitest';
import type { Budget } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { ownBudget } from '../support/own-budget.js';

const file = new Blob([new Uint8Array(3_000)], { type: 'image/png' });
const params = { prompt: 'the fox runs', first_frame_upload_id: file };
const creates = { method: 'POST', path: '/v1/videos' };

let sandbox: ReturnType<typeof createSandbox>;
let budget: Budget;

/** Makes the service forget the upload of an earlier call, and repeat its refusal of the first key. */
beforeEach(async () => {
  sandbox = createSandbox({ balanceTokens: 1e6, limits: 'off', review: 'instant' });
  budget = ownBudget({ maxTokens: 100_000 });
  await sandbox.client().videos.create(params);
  forgetUpload();
});

const forgetUpload = () =>
  sandbox.faults.add({ match: creates, status: 404, code: 'reference_upload_not_found', times: 2 });

const client = () => sandbox.client({ budget, maxRetries: 0 });
const create = (idempotencyKey: string) => client().videos.create(params, { idempotencyKey });
/** The key that the error of a create names. */
const failedKey = (idempotencyKey: string): Promise<string> =>
  create(idempotencyKey).then(
    () => 'no error',
    (error) => error.idempotencyKey,
  );

describe('a create that was sent under a key of the SDK, because the service has forgotten its upload', () => {
  describe.each([
    ['a short key', 'order-1'],
    ['the longest key', 'k'.repeat(255)],
  ])('and lost its answer: %s', (_, key) => {
    let named = '';

    beforeEach(async () => {
      sandbox.faults.add({ match: creates, commitThenDrop: true, times: 1 });
      named = await failedKey(key);
      expect([named.slice(-3), (await budget.usage()).unresolved.length]).toEqual([':f1', 1]);
    });

    it('is released by the key that its error names', async () => {
      await budget.release(named);
      expect(await budget.usage()).toMatchObject({ unresolved: [], reservedTokens: 0, spentTokens: 0 });
    });

    it('is released by the first key too', async () => {
      await budget.release(key);
      expect(await budget.usage()).toMatchObject({ unresolved: [], reservedTokens: 0 });
    });
  });

  it('is settled, and counted once, when it is sent again under the key that its error names', async () => {
    sandbox.faults.add({ match: creates, commitThenDrop: true, times: 1 });
    const named = await failedKey('order-1');
    const { quoted_token_cost: spentTokens } = await create(named);
    expect(await budget.usage()).toMatchObject({ unresolved: [], reservedTokens: 0, spentTokens });
    forgetUpload();
    await create('order-1');
    expect(await budget.usage()).toMatchObject({ unresolved: [], spentTokens });
    expect(sandbox.jobs).toHaveLength(2);
  });

  it('leaves the reservation of another create alone, whose own key ends in the same way', async () => {
    sandbox.faults.add({ match: creates, reset: true, times: 1 });
    await failedKey('scene');
    expect((await budget.usage()).unresolved).toHaveLength(1);
    await create('scene:f2');
    await budget.release('scene:f2');
    expect((await budget.usage()).unresolved).toHaveLength(1);
  });
});
