import { describe, expect, it, vi } from 'vitest';
import { DOCUMENTED_LIMITS } from '../../src/rules/limits.js';
import { accountFor } from '../../src/store/account.js';
import { BASE_URL, created, freshKey, json, stubbed } from '../transport/support.js';

describe('accounts', () => {
  it('are retained while one of their clients exists, however many others are created', async () => {
    vi.useFakeTimers();
    const apiKey = freshKey();
    const first = stubbed(() => json(created()), { apiKey });
    await first.client.jobs.get('job_1');
    await vi.advanceTimersByTimeAsync(120_000);
    for (let tenant = 0; tenant < 1_600; tenant++) accountFor(BASE_URL, `tenant-${tenant}-${apiKey}`);
    const second = stubbed(() => json(created()), { apiKey });
    await second.client.jobs.get('job_1');
    await Promise.all(
      Array.from({ length: DOCUMENTED_LIMITS['videos.create'].limit }, () =>
        first.client.videos.create({ prompt: 'x' }),
      ),
    );
    expect(second.client.limits()['videos.create']).toMatchObject({ free: 0 });
    vi.useRealTimers();
  });
});
