// `npm run campaign -- NAME [arguments]`: long runs that are too slow for CI. Without a name, lists them.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { CAMPAIGNS } from './campaigns.ts';

const [name = '', ...rest] = process.argv.slice(2);
const campaign = CAMPAIGNS[name];
if (campaign === undefined) {
  const names = Object.entries(CAMPAIGNS).map(([known, { about }]) => `  ${known.padEnd(12)}${about}`);
  process.stderr.write(`Usage: npm run campaign -- NAME [arguments]\n\n${names.join('\n')}\n`);
  process.exit(2);
}

const run = (file: string, args: readonly string[]) => {
  const env = { ...process.env, CAMPAIGN: 'full' };
  const { status } = spawnSync(file, args, {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env,
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
};
const isTest = campaign.file.endsWith('.test.ts');
if (campaign.needsBuild) run('tsup', ['--silent', '--no-dts']);
if (isTest) run('vitest', ['run', campaign.file, ...rest]);
else run(process.execPath, ['--import', './scripts/typescript.mjs', campaign.file, ...rest]);
