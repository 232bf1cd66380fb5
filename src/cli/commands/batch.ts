import { statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { fileStore } from '../../adapters/node/index.js';
import { usdOf } from '../../index.js';
import { systemClock } from '../../runtime/clock.js';
import { type BatchTarget, RowRecords, rejectConflicts } from '../batch/records.js';
import { type PromptsFile, readRows, rowCheck, STDIN } from '../batch/rows.js';
import { type RowResult, runBatch } from '../batch/run-batch.js';
import { type OpenSession, parseTime, parseTimeout, runCommand, withExamples } from '../command.js';
import { exitCodeOf, messageOf, rethrowStoreUsage, UsageError } from '../errors.js';
import { quote } from '../quote.js';
import { type WaitFlags, waitOptions } from '../run-job.js';
import { readInput, type Session } from '../session.js';
import { checkDirectory, createDirectory } from '../target.js';
import type { Progress } from '../terminal.js';

interface BatchFlags extends WaitFlags {
  readonly name?: string;
  readonly maxTokens?: number;
  readonly concurrency: number;
  readonly retryFailed?: boolean;
}

/** More concurrent rows would only wait for the account's rate limits. */
const DEFAULT_CONCURRENCY = 100;

export function batchCommand(open: OpenSession): Command {
  const command = new Command('batch')
    .description(
      'Create a job for each row of a JSONL or CSV file, and save the files. Run it again to resume after an interruption; no row is charged twice.',
    )
    .argument(
      '<prompts>',
      'UTF-8. JSONL: {"call":"videos","params":{"prompt":"a fox","duration":5},"id":"fox"} per line; CSV: a column per field; extraBody contains undocumented fields; - reads standard input',
    )
    .option(
      '--name <name>',
      'name of the batch: a new name creates all jobs again; required for standard input and pipes (a name that ends in .csv means CSV)',
      parseName,
    )
    .option('-o, --out <dir>', 'save the files in this directory, which is created if missing')
    .option('--max-tokens <tokens>', 'token limit over all runs of the batch', parseCount)
    .option(
      '--concurrency <rows>',
      "concurrent rows; the account's limits always apply",
      parseCount,
      DEFAULT_CONCURRENCY,
    )
    .option('--retry-failed', 'create a new job for rows whose job failed')
    .option('-f, --force', 'replace files with different content')
    .option('--timeout <time>', 'stop waiting for a row after 90s, 30m, 1h, or "none" (default: 30m)', parseTimeout)
    .option('--poll <time>', 'poll interval (default: depends on the kind of job)', parseTime);
  withExamples(command, [
    'batch prompts.jsonl --out out/',
    'batch prompts.jsonl --out out/ --max-tokens 500',
    'batch prompts.jsonl --out out/ --json > results.jsonl',
    'batch - --name foxes --out out/ < foxes.jsonl',
  ]);
  return runCommand<BatchFlags>(command, open, (session, [path = ''], flags) => batch(session, path, flags));
}

function parseCount(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Pass a whole number, 0 or more.');
  return Number(text);
}

function parseName(text: string): string {
  if (!/^(?!\.)[\w.-]{1,100}$/.test(text)) throw new InvalidArgumentError('Pass letters, digits, "-", "_", and ".".');
  return text;
}

async function batch(session: Session, path: string, flags: BatchFlags): Promise<void> {
  // Reports a missing base URL once instead of for each row.
  session.client();
  const file = await readPrompts(session, path, flags.name);
  const rows = await readRows(file, rowCheck(session.client));
  const target = targetOf(flags);
  const storeName = `${file.name.replace(/\.(jsonl?|[ct]sv)$/i, '')}.store`;
  const store = fileStore(join(target.out, storeName));
  try {
    const client = session.client({ store });
    const records = await RowRecords.read(rows, store, client).catch(rethrowStoreUsage);
    if (flags.retryFailed) await records.retryFailed(rows);
    rejectConflicts(rows, { ...target, store: storeName }, records);
    session.next = { text: 'Run the same command again to resume. No row is charged twice.' };
    const results: RowResult[] = [];
    session.outcome = {
      get report() {
        return reportOf(results);
      },
    };
    const show = session.terminal.progress('Batch', { isLive: true });
    const startMs = systemClock.now();
    const lineWidth = String(rows.at(-1)?.line).length;
    const progress = { rows: rows.length, done: 0, failed: 0, tokens: 0 };
    const onResult = (result: RowResult) => {
      results.push(result);
      printRow(session, result, lineWidth);
      const { status, job } = result;
      progress.done += 1;
      progress.failed += status === 'failed' ? 1 : 0;
      progress.tokens += status === 'pending' ? 0 : (job?.finalTokenCost ?? 0);
      show(batchProgress(progress, systemClock.now() - startMs));
    };
    show(batchProgress(progress, 0));
    const { maxTokens } = flags;
    const concurrency = Math.max(1, flags.concurrency);
    const plan = { rows, client, store, records, target, maxTokens, concurrency, wait: waitOptions(session, flags) };
    const stopReason = await runBatch(session, { ...plan, onResult });
    const report = reportOf(results);
    session.terminal.result({ report }, reportLines(report));
    printNextSteps(session, results, { stopped: stopReason, command: commandOf(path, flags) });
  } finally {
    await store.close();
  }
}

/**
 * Reads the prompts. Requires `--name` for a pipe, because the rows' keys depend on the name, and a pipe's name differs
 * in every run.
 */
async function readPrompts({ host }: Session, path: string, name: string | undefined): Promise<PromptsFile> {
  const stats = path === STDIN ? undefined : statSync(path, { throwIfNoEntry: false });
  if (name === undefined && (path === STDIN || stats?.isFile() === false)) {
    const reason = 'so that the same command finds its rows again';
    throw new UsageError(`"${path}" is not a regular file. Pass --name <name>, ${reason}.`);
  }
  return { path, name: name ?? basename(path), bytes: await readInput(path, host) };
}

function targetOf({ out, force }: BatchFlags): BatchTarget {
  if (out === undefined) throw new UsageError('--out is missing. Pass --out <directory>.');
  if (out === '-') throw new UsageError('--out: a batch has several files. Pass a directory, such as "out/".');
  createDirectory(out);
  checkDirectory(out);
  return { out, force: force === true };
}

/** Aligns the lines on a terminal only, because programs may parse them. */
function printRow({ terminal }: Session, result: RowResult, lineWidth: number): void {
  const { row, ...rest } = result;
  if (terminal.isJson)
    terminal.result({ line: row.line, id: row.id, label: row.label, call: row.call, key: row.key, ...rest }, []);
  else terminal.print([resultLine(result, terminal.isLive ? lineWidth : 0)]);
}

function printNextSteps(
  session: Session,
  results: readonly RowResult[],
  { stopped, command }: { readonly stopped: unknown; readonly command: string },
): void {
  const { terminal } = session;
  if (stopped !== undefined) {
    terminal.note(`Stopped: ${messageOf(stopped)}`);
    session.exitCode = exitCodeOf(stopped);
  }
  const isFailedJob = ({ status, job }: RowResult) => status === 'failed' && job !== undefined;
  // Running it again would fail in the same way.
  const isRejected = ({ status, job, error }: RowResult) =>
    status === 'failed' && job === undefined && error?.recovery === 'change_request';
  const isOpen = (result: RowResult) => result.status !== 'completed' && !isFailedJob(result) && !isRejected(result);
  if (results.some(isRejected))
    terminal.note('Nothing was created for rejected rows. Change them, and run the command again.');
  if (results.some(isOpen)) terminal.note(`Continue with: ${command}`);
  if (results.some(isFailedJob)) terminal.note(`Retry the failed rows with: ${command} --retry-failed`);
}

function commandOf(path: string, { name, out }: BatchFlags): string {
  const flags = { '--name': name, '--out': out };
  const args = Object.entries(flags).flatMap(([flag, value]) => (value === undefined ? [] : [flag, quote(value)]));
  return ['gen-client batch', quote(path), ...args].join(' ');
}

interface Cost {
  readonly jobs: number;
  readonly tokens: number;
}

function reportOf(results: readonly RowResult[]) {
  const withStatus = (status: RowResult['status']) => results.filter((result) => result.status === status);
  const pendingResults = withStatus('pending');
  const finalResults = results.filter(({ job, status }) => job !== undefined && status !== 'pending');
  const tokens = finalResults.reduce((sum, { job }) => sum + (job?.finalTokenCost ?? 0), 0);
  const byLabel = costsBy(finalResults, ({ row }) => row.label).map(([label, cost]) => ({ label, ...cost }));
  return {
    rows: results.length,
    completed: withStatus('completed').length,
    failed: withStatus('failed').length,
    pending: pendingResults.length,
    notSaved: withStatus('not_saved').length,
    notStarted: withStatus('not_started').length,
    tokens,
    usd: usdOf(tokens),
    quotedTokens: pendingResults.reduce((sum, { job }) => sum + (job?.quotedTokenCost ?? 0), 0),
    byModel: costsBy(finalResults, ({ job }) => job?.modelId ?? 'unknown model').map(([model, cost]) => ({
      model,
      ...cost,
    })),
    ...(byLabel.length > 0 && { byLabel }),
  };
}

/** Returns the jobs and tokens of each name, with the most tokens first. */
function costsBy(results: readonly RowResult[], nameOf: (result: RowResult) => string | undefined): [string, Cost][] {
  const costs = new Map<string, Cost>();
  for (const result of results) {
    const name = nameOf(result);
    if (name === undefined) continue;
    const { jobs, tokens } = costs.get(name) ?? { jobs: 0, tokens: 0 };
    costs.set(name, { jobs: jobs + 1, tokens: tokens + (result.job?.finalTokenCost ?? 0) });
  }
  return [...costs].sort(([, a], [, b]) => b.tokens - a.tokens);
}

function reportLines(report: ReturnType<typeof reportOf>): string[] {
  const { rows, completed, failed, pending, notSaved, notStarted, tokens, quotedTokens } = report;
  const costs = [
    ...report.byModel.map(({ model, ...cost }) => ({ name: model, ...cost })),
    ...(report.byLabel ?? []).map(({ label, ...cost }) => ({ name: label, ...cost })),
  ];
  const width = Math.max(0, ...costs.map(({ name }) => name.length));
  const pendingText = pending > 0 ? `, ${pending} pending` : '';
  const quotedText = pending > 0 ? `, ${quotedTokens} quoted for pending rows` : '';
  const unsavedText = notSaved > 0 ? `, ${notSaved} not saved` : '';
  return [
    `${counted(rows, 'row')}: ${completed} completed, ${failed} failed${pendingText}${unsavedText}, ${notStarted} not started.`,
    `${counted(tokens, 'token')} charged (${report.usd.toFixed(2)} USD)${quotedText}.`,
    ...costs.map(
      (cost) => `  ${cost.name.padEnd(width)}  ${counted(cost.jobs, 'job')}  ${counted(cost.tokens, 'token')}`,
    ),
  ];
}

interface BatchProgress {
  readonly rows: number;
  readonly done: number;
  readonly failed: number;
  readonly tokens: number;
}

/** Estimates the remaining time from the rows that are done. */
function batchProgress({ rows, done, failed, tokens }: BatchProgress, elapsedMs: number): Progress {
  const text = `${done} of ${rows} done, ${failed} failed, ${counted(tokens, 'token')}`;
  const etaMs = done === 0 ? undefined : (elapsedMs / done) * (rows - done);
  return { text, step: done, fraction: done / rows, etaMs };
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function resultLine({ row, status, job, file, error, next }: RowResult, lineWidth: number): string {
  const columns = [`line ${String(row.line).padEnd(lineWidth)}`, row.id, status.replace('_', ' '), job?.id];
  if (job?.finalTokenCost) columns.push(counted(job.finalTokenCost, 'token'));
  columns.push(file?.path);
  if (typeof error?.message === 'string') columns.push(error.message);
  if (next !== undefined) columns.push(`Continue with: ${next}`);
  return columns.filter((word) => word !== undefined).join('  ');
}
