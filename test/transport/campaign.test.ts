import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

it('200 creates through seeded faults create 200 jobs, charge each once, and leave no timers or listeners', async () => {
  const script = ['--import', './scripts/typescript.mjs', 'test/transport/campaign.ts', '--creates', '200', '--json'];
  const { stdout } = await promisify(execFile)(process.execPath, script, { cwd: ROOT, timeout: 580_000 });
  const report = JSON.parse(stdout);
  expect(report).toMatchObject({
    jobsOnTheService: 200,
    jobsSeen: 200,
    keys: 200,
    tokensCharged: report.tokensQuoted,
    tokensReserved: 0,
    errors: 0,
    listenersLeft: 0,
    timersLeft: 0,
    unhandledRejections: 0,
  });
  expect(report.attempts).toBeGreaterThan(280);
  expect(Object.keys(report.rawFaults)).toHaveLength(13);
  expect(report.heapGrowthMb).toBeLessThan(8);
}, 600_000);
