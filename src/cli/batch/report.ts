// What a batch came to, in numbers and in lines for a person.
import { usdOf } from '../../rules/price.js';
import type { RowResult } from './run-batch.js';

export interface BatchReport {
  readonly rows: number;
  readonly completed: number;
  readonly failed: number;
  readonly pending: number;
  /** Rows whose job is done and whose file could not be saved. */
  readonly notSaved: number;
  readonly notStarted: number;
  /** Tokens charged, over all runs of the batch. */
  readonly tokens: number;
  readonly usd: number;
  readonly quotedTokens: number;
  readonly byModel: readonly { readonly model: string; readonly jobs: number; readonly tokens: number }[];
  /** The cost by label, where rows have one. */
  readonly byLabel?: readonly { readonly label: string; readonly jobs: number; readonly tokens: number }[];
}

interface Cost {
  jobs: number;
  tokens: number;
}

export class Tally {
  /** Rows whose job has failed. The other rows that failed have none. */
  failedJobs = 0;
  readonly #counts = { completed: 0, failed: 0, pending: 0, not_saved: 0, not_started: 0 };
  readonly #models = new Map<string, Cost>();
  readonly #labels = new Map<string, Cost>();
  #tokens = 0;
  #quotedTokens = 0;

  add({ status, job, row }: RowResult): void {
    this.#counts[status] += 1;
    if (job === undefined) return;
    if (status === 'failed') this.failedJobs += 1;
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
    const { not_saved: notSaved, not_started: notStarted, ...counts } = this.#counts;
    const rows = Object.values(this.#counts).reduce((sum, count) => sum + count, 0);
    const [tokens, quotedTokens] = [this.#tokens, this.#quotedTokens];
    const byModel = byCost(this.#models).map(([model, cost]) => ({ model, ...cost }));
    const byLabel = byCost(this.#labels).map(([label, cost]) => ({ label, ...cost }));
    const costs = { tokens, usd: usdOf(tokens), quotedTokens, byModel, ...(byLabel.length > 0 && { byLabel }) };
    return { rows, ...counts, notSaved, notStarted, ...costs };
  }
}

function addCost(costs: Map<string, Cost>, name: string, tokens: number): void {
  const { jobs, tokens: before } = costs.get(name) ?? { jobs: 0, tokens: 0 };
  costs.set(name, { jobs: jobs + 1, tokens: before + tokens });
}

function byCost(costs: ReadonlyMap<string, Cost>): [string, Cost][] {
  return [...costs].sort(([, one], [, other]) => other.tokens - one.tokens);
}

export function reportLines(report: BatchReport): string[] {
  const { rows, completed, failed, pending, notSaved, notStarted, tokens, quotedTokens } = report;
  const costs = [
    ...report.byModel.map(({ model, ...cost }) => ({ name: model, ...cost })),
    ...(report.byLabel ?? []).map(({ label, ...cost }) => ({ name: label, ...cost })),
  ];
  const width = Math.max(0, ...costs.map(({ name }) => name.length));
  const goesOn = pending > 0 ? `, ${pending} pending` : '';
  const quoted = pending > 0 ? `, ${quotedTokens} quoted for what goes on` : '';
  const unsaved = notSaved > 0 ? `, ${notSaved} not saved` : '';
  return [
    `${counted(rows, 'row')}: ${completed} completed, ${failed} failed${goesOn}${unsaved}, ${notStarted} not started.`,
    `${counted(tokens, 'token')} charged (${report.usd.toFixed(2)} USD)${quoted}.`,
    ...costs.map((one) => `  ${one.name.padEnd(width)}  ${counted(one.jobs, 'job')}  ${counted(one.tokens, 'token')}`),
  ];
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function resultLine({ row, status, job, file, error, next }: RowResult): string {
  const words = [`line ${row.line}`, row.id, status.replace('_', ' '), job?.id];
  if (job?.finalTokenCost) words.push(counted(job.finalTokenCost, 'token'));
  words.push(file?.path);
  if (typeof error?.message === 'string') words.push(error.message);
  if (next !== undefined) words.push(`Go on with: ${next}`);
  return words.filter((word) => word !== undefined).join('  ');
}
