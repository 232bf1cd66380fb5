// `npm run campaign -- NAME [arguments]`: long runs that are too slow for CI. Without a name, lists them.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { CAMPAIGNS } from './campaigns.ts';

const [name = '', ...rest] = process.argv.slice(2);
const campaign = CAMPAIGNS[name];
if (campaign === undefined) {
  const names = Object.entries(CAMPAIGNS).map(([key, { about }]) => `  ${key.padEnd(12)}${about}`);
  process.stderr.write(`Usage: npm run campaign -- NAME [arguments]\n\n${names.join('\n')}\n`);
  process.exit(2);
}

const run = (file: string, args: readonly string[]) => {
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  const { status } = spawnSync(file, args, { cwd, env: { ...process.env, CAMPAIGN: 'full' }, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
};
if (campaign.needsBuild) run('tsup', ['--silent', '--no-dts']);
if (campaign.file.endsWith('.test.ts')) run('vitest', ['run', campaign.file, ...rest]);
else run(process.execPath, ['--import', './scripts/typescript.mjs', campaign.file, ...rest]);
