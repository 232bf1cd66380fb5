import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** What is mutated, and the tests that must notice. Each takes minutes to hours. */
const AREAS = {
  limits: ['limits', 'regressions'],
  transport: ['transport', 'regressions'],
  polling: ['waiting', 'regressions'],
  webhooks: ['webhooks'],
  redis: ['redis', 'regressions'],
  bullmq: ['bullmq'],
  storage: ['storage'],
  durable: ['durable'],
};

if (!existsSync(`${HERE}node_modules/.package-lock.json`))
  spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: HERE, stdio: 'inherit' });

let worst = 0;
const wanted = process.argv.slice(2);
for (const [area, folders] of Object.entries(AREAS)) {
  if (wanted.length > 0 && !wanted.includes(area)) continue;
  const env = { ...process.env, MUTATE_AREA: area, MUTATE_TESTS: folders.join(',') };
  const { status } = spawnSync(`${HERE}node_modules/.bin/stryker`, ['run', `${HERE}stryker.config.mjs`], {
    cwd: ROOT,
    env,
    stdio: 'inherit',
  });
  worst = Math.max(worst, status ?? 1);
}
process.exit(worst);
