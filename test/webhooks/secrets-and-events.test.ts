import { describe, expect, test } from 'vitest';
import type { WebhookErrorReason } from '../../src/errors/webhook-error.js';
import { signWebhook, verifyWebhook } from '../../src/webhooks/index.js';
import { rejection } from '../transport/support.js';
import { NOW_MS, now, SECRET } from './deliver.js';

const secret = SECRET;
const event = { id: 'evt_job_1_failed', type: 'job.failed', data: { job: { id: 'job_1', status: 'failed' } } };
const signed = await signWebhook(event, { secret, now });

function isRejectedAs(reason: WebhookErrorReason) {
  return expect.objectContaining({ name: 'WebhookVerificationError', reason });
}

describe('the secret', () => {
  test.each([undefined, '', '\n', [], [secret, ' \t'], [7 as never]].map((blank) => [blank]))(
    '%j is rejected',
    async (blank) => {
      await expect(verifyWebhook(signed, { secret: blank, now })).rejects.toEqual(isRejectedAs('secret_missing'));
      await expect(signWebhook(event, { secret: blank })).rejects.toEqual(isRejectedAs('secret_missing'));
    },
  );

  test('can be the next, the current, or the previous one during a rotation', async () => {
    expect(await verifyWebhook(signed, { secret: ['whsec_next', secret, 'whsec_before'], now })).toEqual(event);
    const signedTwice = await signWebhook(event, { secret: ['whsec_next', secret], now });
    expect(await verifyWebhook(signedTwice, { secret: 'whsec_next', now })).toEqual(event);
    expect(await verifyWebhook(signedTwice, { secret, now })).toEqual(event);
    await expect(verifyWebhook(signedTwice, { secret: 'whsec_retired', now })).rejects.toEqual(
      isRejectedAs('signature_mismatch'),
    );
  });

  test('can be a list of at most eight', async () => {
    const others = Array.from({ length: 7 }, (_, at) => `whsec_${at}`);
    expect(await verifyWebhook(signed, { secret: [...others, secret], now })).toEqual(event);
    const nine = verifyWebhook(signed, { secret: [...others, 'whsec_7', secret], now });
    await expect(nine).rejects.toEqual(isRejectedAs('options_invalid'));
    await expect(nine).rejects.toThrow('secret has more than 8 entries');
  });

  test("isn't trimmed, and the error mentions surrounding white space", async () => {
    const padded = verifyWebhook(signed, { secret: `${secret}\n`, now });
    await expect(padded).rejects.toThrow('white space');
    const signedPadded = await signWebhook(event, { secret: `${secret}\n`, now });
    expect(await verifyWebhook(signedPadded, { secret: `${secret}\n`, now })).toEqual(event);
  });

  test("doesn't appear in errors, and neither does its digest", async () => {
    const digest = String(signed.headers['X-Service-Signature']).slice(-64);
    const headers = { 'X-Service-Signature': `t=${NOW_MS / 1000},v1=${'0'.repeat(64)}` };
    const error = (await rejection(verifyWebhook({ body: signed.body, headers }, { secret, now }))) as Error;
    expect(error.name).toBe('WebhookVerificationError');
    const actual = JSON.stringify(error) + error.stack + error.message + String(error.cause);
    expect(actual).not.toContain(digest);
    expect(actual).not.toContain(secret);
  });
});

describe('the event', () => {
  const accept = async (body: object | string) =>
    verifyWebhook(await signWebhook(body, { secret, now }), { secret, now });

  test('retains undocumented fields and types', async () => {
    for (const data of [{ archive: 7 }, null, undefined, 'text', []]) {
      const undocumented = { ...event, type: 'job.archived', region: 'eu', data };
      expect(await accept(undocumented)).toEqual(undocumented);
    }
    const extended = { ...event, data: { ...event.data, job: { ...event.data.job, progress: 7 } }, v: 2 };
    expect(await accept(extended)).toEqual(extended);
  });

  test.each([null, undefined, '', 'https://gen.test/v1/jobs/job_1/output'])(
    'can have %j as the URL of a failed job',
    async (providerOutputUrl) => {
      const failed = { ...event, data: { job: { ...event.data.job, providerOutputUrl } } };
      expect(await accept(failed)).toEqual(failed);
    },
  );

  test.each(['job.completed', 'job.failed', 'job.canceled', 'job.blocked'])(
    '%s needs only its ID, its type, and a job ID',
    async (type) => {
      const jobs = [{ id: 'job_1' }, { id: 'job_1', status: 3 }, { id: 'job_1', providerOutputUrl: 7 }];
      for (const job of jobs) {
        const bare = { id: 'evt_1', type, data: { job } };
        expect(await accept(bare)).toEqual(bare);
      }
    },
  );

  test('is identified by the ID in the signed body, not in the headers', async () => {
    const headers = { ...signed.headers, 'X-Service-Event-Id': 'evt_other', 'X-Service-Event-Type': 'job.completed' };
    const { id, type } = await verifyWebhook({ body: signed.body, headers }, { secret, now });
    expect({ id, type }).toEqual({ id: event.id, type: 'job.failed' });
  });

  test.each<[body: object | string, problem: string]>([
    ['', 'not JSON'],
    ['{', 'not JSON'],
    ['null', '`id`'],
    ['[]', '`id`'],
    ['"text"', '`id`'],
    [{ ...event, id: '' }, '`id`'],
    [{ ...event, id: 7 }, '`id`'],
    [{ id: 'evt' }, '`type`'],
    ...['job.completed', 'job.failed', 'job.canceled', 'job.blocked'].flatMap((type): [object, string][] => [
      [{ ...event, type, data: undefined }, '`data.job.id`'],
      [{ ...event, type, data: { job: null } }, '`data.job.id`'],
      [{ ...event, type, data: { job: { status: 'failed' } } }, '`data.job.id`'],
    ]),
  ])('is rejected if it is malformed: %j', async (body, problem) => {
    await expect(accept(body)).rejects.toEqual(isRejectedAs('event_malformed'));
    await expect(accept(body)).rejects.toThrow(problem);
  });

  test('is parsed only after its signature is verified', async () => {
    const { headers } = await signWebhook('{', { secret: 'whsec_forger', now });
    await expect(verifyWebhook({ body: '{', headers }, { secret, now })).rejects.toEqual(
      isRejectedAs('signature_mismatch'),
    );
  });
});
