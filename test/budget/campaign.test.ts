import { describe, expect, test } from 'vitest';
import { whyNoRedis } from '../redis/real-redis.js';
import { MOST_OVER, runCampaign } from './campaign.js';

describe.skipIf(whyNoRedis())('a budget of many processes', () => {
  test('holds through kills, lost answers, refusals, risen prices, a restarted Redis and midnight', async () => {
    const maxTokens = 1_000;
    const days = await runCampaign({
      processes: 2,
      creates: 80,
      maxTokens,
      seed: 7,
      kills: 2,
      killAfterMs: 100,
      restarts: 1,
    });
    expect(days).toHaveLength(2);
    for (const day of days) {
      expect(day.chargedTokens).toBeLessThanOrEqual(maxTokens + MOST_OVER);
      expect(day.chargedTokens).toBeGreaterThanOrEqual(maxTokens * 0.95);
      expect(day).toMatchObject({ spentTokens: day.chargedTokens, reservedTokens: 0 });
      expect(day.counts.overBudget).toBeGreaterThan(0);
    }
  }, 60_000);
});
