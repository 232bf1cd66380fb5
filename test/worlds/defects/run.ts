// npm run defects [-- NAME …]: reintroduces each known defect into a copy of the source, and fails unless the worlds, the
// shop, or the test listed for it detects the defect.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const PATCHES = fileURLToPath(new URL('.', import.meta.url));
const WORLDS = ['--import', './scripts/typescript.mjs', 'test/worlds/run.ts', '--minutes', '1', '--seed', '7'];
const SHOP = ['--import', './scripts/typescript.mjs', 'test/worlds/shop-run.ts', '--seeds', '3', '--orders', '16'];
const testOf = (file: string) => ['node_modules/vitest/vitest.mjs', 'run', '--maxWorkers=1', file];

/** The shop or the test for each defect that the worlds detect rarely or never. */
const DETECTORS: Readonly<Record<string, readonly string[]>> = {
  // The worlds have no lease files, bursts, call durations, or accounts per key, and reach some other cases rarely.
  'b3-waits-behind-those-that-wait': testOf('test/budget/interactions.test.ts'),
  'b4-lease-outlives-its-process': testOf('test/store/file-store.test.ts'),
  'b5-unknown-job-for-ever': testOf('test/store/crash-recovery.test.ts'),
  'b6-a-step-for-each-call': testOf('test/budget/interactions.test.ts'),
  'b7-takes-what-others-hold': testOf('test/budget/interactions.test.ts'),
  'b8-two-seconds-each': testOf('test/budget/interactions.test.ts'),
  'c1-one-account-for-all-keys': testOf('test/limits/account-state.test.ts'),
  'a2-budget-of-the-call-lost': SHOP,
  'left-by-the-dead-is-unsent': testOf('test/rules/ledger.test.ts'),
  'a-failure-frees-what-is-in-flight': testOf('test/budget/regressions.test.ts'),
  'one-sum-counted-twice': testOf('test/budget/regressions.test.ts'),
  'a-forged-end-is-believed': testOf('test/store/crash-recovery.test.ts'),
  'c1-second-call-frees-what-was-sent': testOf('test/budget/outages.test.ts'),
  'c2-room-not-asked-at-send': testOf('test/budget/outages.test.ts'),
  'c3-writes-dropped-in-an-outage': testOf('test/budget/outages.test.ts'),
  'c4-resume-keeps-what-it-claimed': testOf('test/budget/outages.test.ts'),
  'c6-resume-waits-for-its-writes': testOf('test/budget/outages.test.ts'),
  'c7-abort-waits-for-the-store': testOf('test/budget/aborts.test.ts'),
  'c9-stored-file-waits-for-a-charge': testOf('test/budget/outages.test.ts'),
  'c10-waiting-create-holds-the-margin': testOf('test/budget/outages.test.ts'),
  'c11-slot-freed-without-an-answer': testOf('test/limits/counting-service.test.ts'),
  'c12-limits-with-numbers-count-alone': testOf('test/limits/counting-service.test.ts'),
  'c13-tokens-as-floating-point': testOf('test/rules/ledger.test.ts'),
  'f1-nothing-proves-unsent': testOf('test/field/calls/socket-errors.test.ts'),
  // In the worlds, every completed job has its file.
  'f10-missing-file-never-ends-a-wait': testOf('test/waiting/last-poll.test.ts'),
  'f5-refusal-under-200-is-success': testOf('test/field/calls/responses.test.ts'),
  'h1-lapsed-process-spends-its-share': testOf('test/budget/outages.test.ts'),
  'n4-running-jobs-count-as-spent': testOf('test/rules/ledger.test.ts'),
  'u1-budget-counts-alone': testOf('test/budget/client-store.test.ts'),
  'told-before-the-create': testOf('test/budget/interactions.test.ts'),
  'told-before-the-program': testOf('test/budget/interactions.test.ts'),
  'f0-code-alone-proves-unsent': testOf('test/field/calls/socket-errors.test.ts'),
  'f0b-page-counts-as-refusal': testOf('test/field/calls/responses.test.ts'),
  'poll-judged-as-a-create': testOf('test/field/calls/polls.test.ts'),
};

const selected = process.argv.slice(2);
const patches = readdirSync(PATCHES).filter((file) => file.endsWith('.patch'));
const names = patches
  .map((file) => file.replace('.patch', ''))
  .filter((name) => selected.length === 0 || selected.includes(name));
const undetected = names.filter((name) => !isDetected(name));
if (undetected.length > 0) process.stdout.write(`Not found: ${undetected.join(', ')}.\n`);
process.exit(undetected.length === 0 && names.length > 0 ? 0 : 1);

function isDetected(name: string): boolean {
  const copy = mkdtempSync(join(tmpdir(), 'gen-defect-'));
  try {
    for (const part of [
      'src',
      'test',
      'scripts',
      'docs',
      'examples',
      'package.json',
      'tsconfig.json',
      'vitest.config.ts',
    ]) {
      cpSync(join(ROOT, part), join(copy, part), { recursive: true, filter: (path) => !path.includes('node_modules') });
    }
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    const apply = spawnSync('git', ['apply', join(PATCHES, `${name}.patch`)], { cwd: copy, encoding: 'utf8' });
    if (apply.status !== 0) {
      process.stdout.write(`${name}: DOES NOT APPLY ${apply.stderr}`);
      return false;
    }
    const startMs = performance.now();
    const { status, stdout, stderr } = spawnSync(process.execPath, [...(DETECTORS[name] ?? WORLDS)], {
      cwd: copy,
      encoding: 'utf8',
    });
    const seconds = Math.round((performance.now() - startMs) / 1000);
    const output = /cause\]: Error: (.*)|AssertionError.*?: (.*)|(order \d+ has .*|the (?:budget|failure) of .*)/.exec(
      `${stderr}\n${stdout}`,
    );
    const message = output?.slice(1).find(Boolean) ?? '';
    process.stdout.write(`${name}: ${status === 0 ? 'NOT FOUND' : 'found'} in ${seconds} s ${message}\n`);
    return status !== 0;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}
