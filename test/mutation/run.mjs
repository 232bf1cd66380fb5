// npm run mutate -- [area …] [--share 0.1] [--seed 1]: breaks one place at a time, and asks whether a test notices.
// With a share, a random sample of the mutants is tried; the seed says which. The last lines are rows of CONTRIBUTING's table.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { AREAS } from './areas.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Of the mutants of an area. */
const LEAST_KILLED = 0.85;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { share: { type: 'string', default: '1' }, seed: { type: 'string', default: '1' } },
});
const unknown = positionals.filter((area) => !(area in AREAS));
if (unknown.length > 0) {
  console.error(`There is no area ${unknown.join(', ')}. There are: ${Object.keys(AREAS).join(', ')}.`);
  process.exit(2);
}

if (!existsSync(`${HERE}node_modules/.package-lock.json`))
  spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: HERE, stdio: 'inherit' });

const rows = [];
let isEnough = true;
for (const area of positionals.length > 0 ? positionals : Object.keys(AREAS)) {
  const report = `${ROOT}node_modules/.cache/mutation/${area.replace('/', '-')}.json`;
  const env = {
    ...process.env,
    MUTATE_AREA: area,
    MUTATE_REPORT: report,
    MUTATE_SHARE: values.share,
    MUTATE_SEED: values.seed,
  };
  // Stryker's processes give way to everything else on the machine.
  const stryker = ['-n', '15', `${HERE}node_modules/.bin/stryker`, 'run', `${HERE}stryker.config.mjs`];
  const { status } = spawnSync('nice', stryker, { cwd: ROOT, env, stdio: 'inherit' });
  if (status !== 0) {
    rows.push(`| ${area} | did not run |`);
    isEnough = false;
    continue;
  }
  const { row, killed } = resultOf(area, JSON.parse(readFileSync(report, 'utf8')));
  rows.push(row);
  isEnough &&= killed >= LEAST_KILLED;
}
console.log(
  [
    '| area | mutants | killed | by a timeout | no test | date | extent |',
    '|---|---:|---:|---:|---:|---|---|',
    ...rows,
  ].join('\n'),
);
process.exit(isEnough ? 0 : 1);

function resultOf(area, { files }) {
  const all = Object.values(files).flatMap(({ mutants }) => mutants);
  const tried = all.filter(({ status }) => !['CompileError', 'RuntimeError', 'Ignored'].includes(status));
  const count = (isCounted) => tried.filter(isCounted).length;
  const killedCount = count(({ status }) => status === 'Killed' || status === 'Timeout');
  // Noticed only because a test hung: by Stryker's limit, or by the one of a test.
  const hung = count(({ status, statusReason = '' }) => status === 'Timeout' || /timed out in/i.test(statusReason));
  const untested = count(({ status }) => status === 'NoCoverage');
  const killed = tried.length === 0 ? 0 : killedCount / tried.length;
  const date = new Date().toISOString().slice(0, 10);
  const extent =
    tried.length === all.length ? 'whole' : `sample, ${tried.length} of ${all.length}, seed ${values.seed}`;
  const percent = `${(100 * killed).toFixed(1)} %`;
  return { killed, row: `| ${area} | ${tried.length} | ${percent} | ${hung} | ${untested} | ${date} | ${extent} |` };
}
