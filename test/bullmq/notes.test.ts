import { describe, expect, it } from 'vitest';
import { openNotes } from '../../src/adapters/bullmq/notes.js';
import { noRedis, queuesOnSandboxes } from './queue-on-sandbox.js';

describe.skipIf(noRedis !== undefined)('a queued call', () => {
  const { open } = queuesOnSandboxes();

  it('whose worker died between storing its job and noting it is noted at its next read, and woken by the webhook of that job', async () => {
    const { sandbox, queue, work, name, connection } = open({ jobDurationMs: 3_600_000 });
    const notes = openNotes(connection, { name });
    work({ pollIntervalMs: 200 });
    const call = await queue.videos.create({ prompt: 'a fox at dawn' });
    await expect.poll(() => queue.queue.getDelayedCount(), { timeout: 10_000 }).toBe(1);
    const jobId = sandbox.jobs[0]?.id ?? '';
    expect(await notes.owner(jobId)).toBe(call.id);
    await notes.forget(jobId);
    await expect.poll(() => notes.owner(jobId), { timeout: 10_000 }).toBe(call.id);
    await notes.close();
  });
});
