import { usdOf } from '../../rules/price.js';
import type { Job } from '../../schemas/job.js';
import type { Placed } from './places.js';
import type { Row } from './rows.js';

/** What became of a row. */
export interface RowResult extends Placed {
  readonly row: Pick<Row, 'line' | 'id' | 'label' | 'call' | 'key'>;
  /** `failed`: there is no job, or it ended without a file. `not_saved`: the job is done, and its file is not placed. */
  readonly status: 'completed' | 'failed' | 'not_saved' | 'not_started';
  /** The line of the row whose job this is, because both have the same key. */
  readonly sameAs?: number | undefined;
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
  /** Rows whose job is done and whose file could not be placed. */
  readonly notSaved: number;
  readonly notStarted: number;
  /** Tokens charged, over all runs of the batch. */
  readonly tokens: number;
  readonly usd: number;
  readonly byModel: readonly { readonly model: string; readonly jobs: number; readonly tokens: number }[];
  /** The cost by label, where rows have one. */
  readonly byLabel?: readonly { readonly label: string; readonly jobs: number; readonly tokens: number }[];
}

/** Adds up results as they come. */
export class Tally {
  readonly #counts = { completed: 0, failed: 0, not_saved: 0, not_started: 0 };
  readonly #models = new Map<string, Cost>();
  readonly #labels = new Map<string, Cost>();
  #tokens = 0;

  add({ status, job, row, sameAs }: RowResult): void {
    this.#counts[status] += 1;
    if (job === undefined || sameAs !== undefined) return;
    const tokens = job.finalTokenCost ?? 0;
    this.#tokens += tokens;
    addCost(this.#models, job.modelId ?? 'unknown model', tokens);
    if (row.label !== undefined) addCost(this.#labels, row.label, tokens);
  }

  report(): BatchReport {
    const { completed, failed, not_saved: notSaved, not_started: notStarted } = this.#counts;
    return {
      rows: completed + failed + notSaved + notStarted,
      completed,
      failed,
      notSaved,
      notStarted,
      tokens: this.#tokens,
      usd: usdOf(this.#tokens),
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
export function reportLines(report: BatchReport): string[] {
  const { rows, completed, failed, notSaved, notStarted, tokens, usd, byModel, byLabel = [] } = report;
  const costs = [...byModel.map(({ model, ...cost }) => ({ name: model, ...cost }))];
  costs.push(...byLabel.map(({ label, ...cost }) => ({ name: label, ...cost })));
  const width = Math.max(0, ...costs.map(({ name }) => name.length));
  const unsaved = notSaved > 0 ? `, ${notSaved} not saved` : '';
  return [
    `${counted(rows, 'row')}: ${completed} completed, ${failed} failed${unsaved}, ${notStarted} not started.`,
    `${counted(tokens, 'token')} charged (${usd.toFixed(2)} USD).`,
    ...costs.map((one) => `  ${one.name.padEnd(width)}  ${counted(one.jobs, 'job')}  ${counted(one.tokens, 'token')}`),
  ];
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** A row's result for a person. */
export function resultLine({ row, status, job, file, stored, error, next, sameAs }: RowResult): string {
  const words = [`line ${row.line}`, row.id, status.replace('_', ' '), job?.id];
  if (job?.finalTokenCost) words.push(counted(job.finalTokenCost, 'token'));
  words.push(file?.path, stored?.url);
  if (typeof error?.message === 'string') words.push(error.message);
  if (sameAs !== undefined) words.push(`the same key as line ${sameAs}, so the same job`);
  if (next !== undefined) words.push(`Go on with: ${next}`);
  return words.filter((word) => word !== undefined).join('  ');
}
