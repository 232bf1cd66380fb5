import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

it('80 creates through seeded faults create 80 jobs, charge each once, and leave nothing behind', async () => {
  const script = ['--import', './scripts/typescript.mjs', 'test/transport/campaign.ts', '--creates', '80', '--json'];
  const { stdout } = await promisify(execFile)(process.execPath, script, { cwd: ROOT, timeout: 580_000 });
  const report = JSON.parse(stdout);
  expect(report).toMatchObject({
    jobsOnTheService: 80,
    jobsSeen: 80,
    keys: 80,
    tokensCharged: report.tokensQuoted,
    tokensReserved: 0,
    errors: 0,
    listenersLeft: 0,
    timersLeft: 0,
    unhandledRejections: 0,
  });
  expect(report.attempts).toBeGreaterThan(112);
  expect(Object.keys(report.rawFaults)).toHaveLength(13);
  expect(report.heapGrowthMb).toBeLessThan(8);
}, 600_000);
