import { basename, dirname, join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { type FileStore, fileStore } from '../../adapters/node/index.js';
import { usdOf } from '../../rules/price.js';
import { quote } from '../../schemas/show.js';
import { type BatchPlaces, refuseTaken, storeAt, tryStore } from '../batch/places.js';
import { readRecords } from '../batch/records.js';
import { type Row, readRows } from '../batch/rows.js';
import { type BatchPlan, type RowResult, runBatch } from '../batch/run-batch.js';
import { isUnpaid } from '../batch/standing.js';
import { doing, type JobFlags, type OpenSession, parseTime, parseTimeout, withExamples } from '../command.js';
import { exitCodeOf, messageOf, UsageError } from '../errors.js';
import type { Session } from '../session.js';
import { makeDirectory, tryDirectory } from '../target.js';

interface BatchFlags extends Pick<JobFlags, 'out' | 'force' | 'timeout' | 'poll'> {
  readonly dest?: string;
  readonly maxTokens?: number;
  readonly concurrency: number;
  readonly run: string;
  readonly retryFailed?: boolean;
}

/** More rows at once only wait for the account's limits. */
const ROWS_AT_ONCE = 100;

/** `gen-client batch`: a job a row, resumable. */
export function batchCommand(open: OpenSession): Command {
  const command = new Command('batch')
    .description(
      'Make a job of each row of a JSONL or CSV file and save the files. Run it again to go on after an interruption: no row is paid for twice.',
    )
    .argument(
      '<prompts>',
      'JSONL: {"call":"videos","params":{"prompt":"a fox","duration":5},"id":"fox"} per line; CSV: a column per field',
    )
    .option('-o, --out <dir>', 'save the files in this directory; it is made')
    .option('--dest <url>', 'copy the files to s3://bucket/prefix/ (AWS_* variables name keys, region and endpoint)')
    .option('--max-tokens <tokens>', 'start no row that would pass this sum, over all runs of the batch', parseCount)
    .option('--concurrency <rows>', "rows at once; the account's limits hold in any case", parseCount, ROWS_AT_ONCE)
    .option('--retry-failed', 'make a new job for rows whose job has failed')
    .option('--run <name>', 'another name makes all jobs anew', '')
    .option('-f, --force', 'replace files of another content')
    .option('--timeout <time>', 'stop waiting for a row after 90s, 30m, 1h or "none" (default: 30m)', parseTimeout)
    .option('--poll <time>', 'how often to look (default: what suits the kind of job)', parseTime);
  withExamples(command, [
    'batch prompts.jsonl --out out/',
    'batch prompts.jsonl --out out/ --max-tokens 500',
    'batch prompts.jsonl --dest s3://media/foxes/ --json > results.jsonl',
  ]);
  return doing<BatchFlags>(command, open, (session, [path = ''], flags) => batch(session, path, flags));
}

async function batch(session: Session, path: string, flags: BatchFlags): Promise<void> {
  // A base URL that is missing concerns all rows.
  session.client();
  const rows = await readRows(path, flags.run);
  const places = await placesOf(session, flags);
  const name = `${basename(path).replace(/\.(jsonl?|csv)$/, '')}.store`;
  const store = fileStore(join(flags.out ?? dirname(path), name));
  try {
    await runRows(session, path, { ...flags, rows, places, store });
  } finally {
    await store.close();
  }
}

/** The rows of a batch, and its store. */
interface OpenedBatch extends BatchFlags {
  readonly rows: readonly Row[];
  readonly places: BatchPlaces;
  readonly store: FileStore;
}

async function runRows(session: Session, path: string, { rows, places, store, ...flags }: OpenedBatch): Promise<void> {
  const records = await readRecords(store, rows);
  const retryFailed = flags.retryFailed === true;
  await refuseTakenNames(session, { rows, records, places, retryFailed });
  session.isQuiet = true;
  session.hint = `Run the same command again: it goes on where it was and pays for no row twice.`;
  const tally = new Tally();
  const progress = session.terminal.progress(`Batch ${basename(path)}`);
  progress.count(0, rows.length, '');
  const plan: BatchPlan = {
    rows,
    client: session.client().withOptions({ store }),
    records,
    sentKeys: session.sentKeys,
    places,
    maxTokens: flags.maxTokens,
    concurrency: Math.max(1, flags.concurrency),
    retryFailed,
    wait: { timeoutMs: flags.timeout, pollIntervalMs: flags.poll },
    onResult(result) {
      tally.add(result);
      const report = tally.report();
      session.outcome = { report };
      progress.aside(() => tell(session, result));
      const { failed, tokens } = report;
      progress.count(report.rows, rows.length, `  ${failed > 0 ? `${failed} failed, ` : ''}${tokens} tokens`);
    },
  };
  try {
    const { stopped } = await runBatch(session, plan);
    progress.stop();
    const report = tally.report();
    session.terminal.result({ report }, reportLines(report));
    sayWhatIsLeft(session, { report, stopped, command: commandOf(path, flags) });
  } finally {
    progress.stop();
  }
}

/** Before a row is paid for, its name must be free. */
async function refuseTakenNames(
  { signal }: Session,
  { rows, records, places, retryFailed }: Pick<BatchPlan, 'rows' | 'records' | 'places' | 'retryFailed'>,
): Promise<void> {
  const known = rows.map((row) => ({ row, record: records.of(row) }));
  await refuseTaken(
    known.filter(({ record }) => isUnpaid(record, retryFailed)),
    places,
    signal,
  );
}

async function placesOf(session: Session, { out, dest, force }: BatchFlags): Promise<BatchPlaces> {
  if (out === undefined && dest === undefined) {
    throw new UsageError('Where do the files go? Pass --out dir/, or --dest s3://bucket/prefix/.');
  }
  if (out === '-') throw new UsageError('--out: a batch has several files. Give a directory, such as "out/".');
  if (out !== undefined) {
    await makeDirectory(out);
    tryDirectory(out);
  }
  const destination = dest === undefined ? undefined : storeAt(dest, session.machine);
  if (destination) await tryStore(destination, session.signal);
  return { out, force: force === true, destination };
}

/** A row's result, as soon as there is one. */
function tell({ terminal }: Session, result: RowResult): void {
  const { row, ...rest } = result;
  if (terminal.isJson)
    terminal.result({ line: row.line, id: row.id, label: row.label, call: row.call, key: row.key, ...rest }, []);
  else terminal.print([resultLine(result)]);
}

function sayWhatIsLeft(
  session: Session,
  { report, stopped, command }: { readonly report: BatchReport; readonly stopped: unknown; readonly command: string },
): void {
  const { terminal } = session;
  if (stopped !== undefined) {
    terminal.note(`Stopped: ${messageOf(stopped)}`);
    session.exitCode = exitCodeOf(stopped);
  }
  if (report.pending > 0) terminal.note(`Wait for the jobs that go on: ${command}`);
  if (report.failed > 0) terminal.note(`Make new jobs for the rows whose job has failed: ${command} --retry-failed`);
  if (report.notSaved > 0) terminal.note(`Fetch the files that were not saved: ${command}`);
  if (report.notStarted > 0) terminal.note(`Start the rest with: ${command}`);
}

function commandOf(path: string, { out, dest, run }: BatchFlags): string {
  const flags = { '--out': out, '--dest': dest, '--run': run || undefined };
  const words = Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [name, quote(value)]));
  return ['gen-client batch', quote(path), ...words].join(' ');
}

function parseCount(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Give a whole number, 0 or more.');
  return Number(text);
}

/** What a batch came to. */
interface BatchReport {
  readonly rows: number;
  readonly completed: number;
  readonly failed: number;
  /** Rows whose job is done and whose file could not be placed. */
  readonly notSaved: number;
  readonly notStarted: number;
  /** Rows whose job goes on. */
  readonly pending: number;
  /** Tokens charged, over all runs of the batch. */
  readonly tokens: number;
  readonly usd: number;
  /** Tokens that are quoted for the jobs that go on. */
  readonly quotedTokens: number;
  readonly byModel: readonly { readonly model: string; readonly jobs: number; readonly tokens: number }[];
  /** The cost by label, where rows have one. */
  readonly byLabel?: readonly { readonly label: string; readonly jobs: number; readonly tokens: number }[];
}

/** Adds up results as they come. */
class Tally {
  readonly #counts = { completed: 0, failed: 0, pending: 0, not_saved: 0, not_started: 0 };
  readonly #models = new Map<string, Cost>();
  readonly #labels = new Map<string, Cost>();
  #tokens = 0;
  #quotedTokens = 0;

  add({ status, job, row, sameAs }: RowResult): void {
    this.#counts[status] += 1;
    if (job === undefined || sameAs !== undefined) return;
    if (status === 'pending') {
      this.#quotedTokens += job.quotedTokenCost ?? 0;
      return;
    }
    const tokens = job.finalTokenCost ?? 0;
    this.#tokens += tokens;
    addCost(this.#models, job.modelId ?? 'unknown model', tokens);
    if (row.label !== undefined) addCost(this.#labels, row.label, tokens);
  }

  report(): BatchReport {
    const { completed, failed, pending, not_saved: notSaved, not_started: notStarted } = this.#counts;
    return {
      rows: completed + failed + pending + notSaved + notStarted,
      completed,
      failed,
      pending,
      notSaved,
      notStarted,
      tokens: this.#tokens,
      usd: usdOf(this.#tokens),
      quotedTokens: this.#quotedTokens,
      byModel: byCost(this.#models).map(([model, cost]) => ({ model, ...cost })),
      ...(this.#labels.size > 0 && { byLabel: byCost(this.#labels).map(([label, cost]) => ({ label, ...cost })) }),
    };
  }
}

interface Cost {
  jobs: number;
  tokens: number;
}

function addCost(costs: Map<string, Cost>, name: string, tokens: number): void {
  const { jobs, tokens: before } = costs.get(name) ?? { jobs: 0, tokens: 0 };
  costs.set(name, { jobs: jobs + 1, tokens: before + tokens });
}

function byCost(costs: ReadonlyMap<string, Cost>): [string, Cost][] {
  return [...costs].sort(([, one], [, other]) => other.tokens - one.tokens);
}

/** A report for a person. */
function reportLines(report: BatchReport): string[] {
  const {
    rows,
    completed,
    failed,
    pending,
    notSaved,
    notStarted,
    tokens,
    usd,
    quotedTokens,
    byModel,
    byLabel = [],
  } = report;
  const costs = [...byModel.map(({ model, ...cost }) => ({ name: model, ...cost }))];
  costs.push(...byLabel.map(({ label, ...cost }) => ({ name: label, ...cost })));
  const width = Math.max(0, ...costs.map(({ name }) => name.length));
  const goesOn = pending > 0 ? `, ${pending} pending` : '';
  const quoted = pending > 0 ? `, ${quotedTokens} quoted for what goes on` : '';
  const unsaved = notSaved > 0 ? `, ${notSaved} not saved` : '';
  return [
    `${counted(rows, 'row')}: ${completed} completed, ${failed} failed${goesOn}${unsaved}, ${notStarted} not started.`,
    `${counted(tokens, 'token')} charged (${usd.toFixed(2)} USD)${quoted}.`,
    ...costs.map((one) => `  ${one.name.padEnd(width)}  ${counted(one.jobs, 'job')}  ${counted(one.tokens, 'token')}`),
  ];
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** A row's result for a person. */
function resultLine({ row, status, job, file, stored, error, next, sameAs }: RowResult): string {
  const words = [`line ${row.line}`, row.id, status.replace('_', ' '), job?.id];
  if (job?.finalTokenCost) words.push(counted(job.finalTokenCost, 'token'));
  words.push(file?.path, stored?.url);
  if (typeof error?.message === 'string') words.push(error.message);
  if (sameAs !== undefined) words.push(`the same key as line ${sameAs}, so the same job`);
  if (next !== undefined) words.push(`Go on with: ${next}`);
  return words.filter((word) => word !== undefined).join('  ');
}
