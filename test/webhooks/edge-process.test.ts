import { signWebhook, verifyWebhook } from 'gen-client/webhooks';
import { expect, test, vi } from 'vitest';
import { completedEvent } from '../support/completed-event.js';

test('a runtime whose process throws at every function, as Next.js on the edge has it, falls back to WebCrypto', async () => {
  const secret = 'whsec_edge';
  const event = completedEvent('job_1', 'https://service.test', '2026-01-01T00:00:00Z');
  const { body, headers } = await signWebhook(event, { secret });
  const handOver = vi.spyOn(process, 'getBuiltinModule').mockImplementation(() => {
    throw new Error('A Node.js API is used which is not supported in the Edge Runtime.');
  });
  await expect(verifyWebhook({ body, headers }, { secret })).resolves.toMatchObject({ id: event.id });
  expect(handOver).toHaveBeenCalled();
  handOver.mockRestore();
});
