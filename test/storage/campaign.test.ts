// A short run of `npm run campaign -- storage`, and programs killed during a copy.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { copyOutput, s3 } from '../../src/adapters/storage/index.js';
import { LoopbackService } from '../files/loopback-service.js';
import { createClient, createMovie, openPerTest } from '../files/support.js';
import { ROOT } from '../support/build.js';
import { runCampaign } from './campaign.js';
import { S3Double } from './s3-double.js';

it('stores 60 complete objects despite service and store faults, and transfers nothing on a second run', async () => {
  const report = await runCampaign(60, 3);
  expect(report.faults.service).toBeGreaterThan(30);
  expect(report.faults.store).toBeGreaterThan(10);
  expect(report.checks).toBeGreaterThan(5);
  const repeated = { existed: 60, puts: 0, downloads: 0 };
  expect(report).toMatchObject({ complete: 60, incomplete: 0, repeated, withApiKey: 0 });
});

const MOVIE = createMovie(2_000_000);
const service = openPerTest(new LoopbackService());
const store = openPerTest(new S3Double());

it.each([10_000, 1_999_999])(
  "a program killed after %i bytes leaves no object and doesn't change the job",
  async (bytes) => {
    service.addOutput('job_1', { body: MOVIE });
    const program = `
      import { GenClient } from '${ROOT}src/index.ts';
      import { copyOutput, s3 } from '${ROOT}src/adapters/storage/index.ts';
      const client = new GenClient({ apiKey: 'k', baseUrl: '${service.baseUrl}' });
      await copyOutput(client, 'job_1', s3(${JSON.stringify(store.at('fox.mp4'))}));`;
    const flags = ['--import', `${ROOT}scripts/typescript.mjs`, '--input-type=module-typescript', '-e', program];
    store.faults.push({ method: 'PUT', stallAfter: bytes });
    const child = spawn(process.execPath, flags, { stdio: 'inherit' });
    await expect.poll(() => store.sent('PUT')[0]?.bytes ?? 0).toBeGreaterThanOrEqual(bytes);
    child.kill('SIGKILL');
    const [, signal] = await once(child, 'exit');
    expect(signal).toBe('SIGKILL');
    expect(store.objects.size).toBe(0);
    expect(service.requests.every(({ method }) => method === 'GET' || method === 'HEAD')).toBe(true);
    expect(await copyOutput(createClient(service), 'job_1', s3(store.at('fox.mp4')))).toMatchObject({ existed: false });
    expect(store.objects.get('fox.mp4')?.bytes.equals(MOVIE)).toBe(true);
  },
);
