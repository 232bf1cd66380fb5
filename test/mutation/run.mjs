// npm run mutate -- [area …] [--share 0.1] [--seed 1] [--since COMMIT] [--continue | --untried] [--at-once 1]: breaks one place at
// a time, and asks whether a test notices. With a share, a random sample of the mutants is tried; the seed says which. With
// `--since` only lines that the commit does not have are broken. With `--continue` mutants that an earlier run killed are not
// tried again: after new tests only the survivors are. With `--untried` survivors are not tried again either: a run that was
// stopped goes on. `--at-once` says how many are tried side by side: more for an area whose tests wait most of the time. The
// last lines are rows of CONTRIBUTING's table.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { AREAS } from './areas.ts';
import { isKilled, nameOf, readLog } from './log.mjs';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const REPORTS = `${ROOT}node_modules/.cache/mutation/`;
/** Of the mutants of an area. */
const LEAST_KILLED = 0.85;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    share: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    since: { type: 'string', default: '' },
    continue: { type: 'boolean', default: false },
    untried: { type: 'boolean', default: false },
    'at-once': { type: 'string', default: '1' },
  },
});
const unknown = positionals.filter((area) => !(area in AREAS));
if (unknown.length > 0) {
  console.error(`There is no area ${unknown.join(', ')}. There are: ${Object.keys(AREAS).join(', ')}.`);
  process.exit(2);
}

if (!existsSync(`${HERE}node_modules/.package-lock.json`))
  spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: HERE, stdio: 'inherit' });
mkdirSync(REPORTS, { recursive: true });

const rows = [];
let isEnough = true;
for (const area of positionals.length > 0 ? positionals : Object.keys(AREAS)) {
  const report = `${REPORTS}${area.replace('/', '-')}.json`;
  const log = `${report}l`;
  if (!values.continue && !values.untried) rmSync(log, { force: true });
  const env = {
    ...process.env,
    MUTATE_AREA: area,
    MUTATE_REPORT: report,
    MUTATE_LOG: log,
    MUTATE_SHARE: values.share,
    MUTATE_SEED: values.seed,
    MUTATE_SINCE: values.since,
    MUTATE_UNTRIED: values.untried ? '1' : '',
    MUTATE_AT_ONCE: values['at-once'],
  };
  // Stryker's processes give way to everything else on the machine.
  const stryker = ['-n', '15', `${HERE}node_modules/.bin/stryker`, 'run', `${HERE}stryker.config.mjs`];
  const { status } = spawnSync('nice', stryker, { cwd: ROOT, env, stdio: 'inherit' });
  if (status !== 0) {
    rows.push(`| ${area} | did not run |`);
    isEnough = false;
    continue;
  }
  const { row, killed } = resultOf(area, JSON.parse(readFileSync(report, 'utf8')), readLog(log));
  rows.push(row);
  isEnough &&= killed >= LEAST_KILLED;
}
console.log(
  [
    '| area | mutants tried | killed | by a timeout | no test | date | extent |',
    '|---|---:|---:|---:|---:|---|---|',
    ...rows,
  ].join('\n'),
);
process.exit(isEnough ? 0 : 1);

/** Counts the mutants of today's source only: the log may also hold those of lines that have changed. */
function resultOf(area, { files }, log) {
  const all = Object.entries(files).flatMap(([file, { mutants }]) => mutants.map((mutant) => nameOf(file, mutant)));
  const known = all.map((name) => log.get(name)).filter((result) => result !== undefined);
  // Those that break the loading of a file say nothing of a test.
  const tried = known.filter(({ status }) => status !== 'RuntimeError');
  const killedCount = tried.filter(isKilled).length;
  const hung = tried.filter(({ isHung }) => isHung).length;
  const untested = tried.filter(({ status }) => status === 'NoCoverage').length;
  const killed = tried.length === 0 ? 0 : killedCount / tried.length;
  const date = new Date().toISOString().slice(0, 10);
  const sample = values.since ? `lines since ${values.since}` : `seed ${values.seed}`;
  const extent = known.length === all.length ? 'whole' : `sample, ${tried.length} of ${all.length}, ${sample}`;
  const percent = `${(100 * killed).toFixed(1)} %`;
  return { killed, row: `| ${area} | ${tried.length} | ${percent} | ${hung} | ${untested} | ${date} | ${extent} |` };
}
