// npm run worlds -- --minutes 60 --seed 7: worlds for any length of time, or those of one seed again.
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { minutes: { type: 'string' }, seed: { type: 'string' } } });
const env = {
  ...process.env,
  WORLDS_MINUTES: values.minutes ?? '10',
  WORLDS_SEED: values.seed ?? String(Date.now() & 0x7fffffff),
};
const { status } = spawnSync('vitest', ['run', 'test/worlds'], { env, stdio: 'inherit' });
process.exitCode = status ?? 1;
