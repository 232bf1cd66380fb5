import type { Job } from '../../schemas/job.js';
import type { Placed } from './places.js';
import type { Row } from './rows.js';

/** What became of a row. */
export interface RowResult extends Placed {
  readonly row: Pick<Row, 'line' | 'id' | 'call' | 'key'>;
  readonly status: 'completed' | 'failed' | 'not_started';
  readonly job?: Job | undefined;
  readonly error?: Record<string, unknown> | undefined;
  /** The command that fetches a file which could not be placed. */
  readonly next?: string | undefined;
}

/** What a batch came to. */
export interface BatchReport {
  readonly rows: number;
  readonly completed: number;
  readonly failed: number;
  readonly notStarted: number;
  /** Tokens charged, over all runs of the batch. */
  readonly tokens: number;
  readonly usd: number;
  readonly byModel: readonly { readonly model: string; readonly jobs: number; readonly tokens: number }[];
}

/** 1 token = 0.05 USD (spec: Billing 1). */
const TOKENS_PER_USD = 20;

/** Adds up results as they come. */
export class Tally {
  readonly #counts = { completed: 0, failed: 0, not_started: 0 };
  readonly #models = new Map<string, { model: string; jobs: number; tokens: number }>();
  #tokens = 0;

  add({ status, job }: RowResult): void {
    this.#counts[status] += 1;
    if (job === undefined) return;
    const model = job.modelId ?? 'unknown model';
    const sum = this.#models.get(model) ?? { model, jobs: 0, tokens: 0 };
    const tokens = job.finalTokenCost ?? 0;
    sum.jobs += 1;
    sum.tokens += tokens;
    this.#tokens += tokens;
    this.#models.set(model, sum);
  }

  report(): BatchReport {
    const { completed, failed, not_started: notStarted } = this.#counts;
    return {
      rows: completed + failed + notStarted,
      completed,
      failed,
      notStarted,
      tokens: this.#tokens,
      usd: this.#tokens / TOKENS_PER_USD,
      byModel: [...this.#models.values()].sort((one, other) => other.tokens - one.tokens),
    };
  }
}

/** A report for a person. */
export function reportLines(report: BatchReport): string[] {
  const { rows, completed, failed, notStarted, tokens, usd, byModel } = report;
  const width = Math.max(0, ...byModel.map(({ model }) => model.length));
  return [
    `${counted(rows, 'row')}: ${completed} completed, ${failed} failed, ${notStarted} not started.`,
    `${counted(tokens, 'token')} charged (${usd.toFixed(2)} USD).`,
    ...byModel.map(
      (one) => `  ${one.model.padEnd(width)}  ${counted(one.jobs, 'job')}  ${counted(one.tokens, 'token')}`,
    ),
  ];
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** A row's result for a person. */
export function resultLine({ row, status, job, file, stored, error }: RowResult): string {
  const words = [`line ${row.line}`, row.id, status.replace('_', ' '), job?.id];
  if (job?.finalTokenCost) words.push(counted(job.finalTokenCost, 'token'));
  words.push(file?.path, stored?.url);
  if (typeof error?.message === 'string') words.push(error.message);
  return words.filter((word) => word !== undefined).join('  ');
}
