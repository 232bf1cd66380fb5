import Stripe from 'stripe';
import { expect, test } from 'vitest';
import { signWebhook, verifyWebhook } from '../../src/webhooks/index.js';
import { event } from './deliver.js';

// The service's header has the same syntax as Stripe's, so each library must accept the other's header.
const { webhooks } = new Stripe('sk_test_none');
const secret = 'whsec_shared';
const payload = JSON.stringify({ ...event, prompt: 'Füchse 🦊' });

test("this package verifies Stripe's test header", async () => {
  const header = webhooks.generateTestHeaderString({ payload, secret });
  const headers = { 'X-Service-Signature': header };
  expect(await verifyWebhook({ body: payload, headers }, { secret })).toMatchObject(event);
  expect(await verifyWebhook({ body: Buffer.from(payload), headers }, { secret })).toMatchObject(event);
});

test("Stripe verifies this package's signature", async () => {
  const { body, headers } = await signWebhook(event, { secret: ['whsec_next', secret] });
  const header = String(headers['X-Service-Signature']);
  expect(webhooks.constructEvent(body, header, secret)).toEqual(event);
  expect(webhooks.constructEvent(Buffer.from(body), header, 'whsec_next')).toEqual(event);
  expect(() => webhooks.constructEvent(`${body} `, header, secret)).toThrow('signature');
});
