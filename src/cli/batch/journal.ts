import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { reasonOf } from '../../callbacks.js';
import { isFields } from '../../schemas/envelope.js';
import type { Job } from '../../schemas/job.js';
import { UsageError } from '../exit-codes.js';
import type { Placed } from './places.js';

/** How far a row has come. */
export interface RowState {
  /** `sending`: a create may have been sent. `refused`: the service made no job. `ended`: the job is final. */
  readonly state: 'sending' | 'accepted' | 'refused' | 'ended';
  /** Which try of the row this is, from 0: a failed row that is tried again has another key. */
  readonly attempt: number;
  /** Tokens that are estimated, quoted or charged, by the state. Undefined while a price is unknown. */
  readonly tokens?: number | undefined;
  /** What the service has quoted. */
  readonly price?: number | undefined;
  /** What the price was quoted for. */
  readonly priceClass?: string | undefined;
  /** Where the file of the job is. */
  readonly placed?: Placed | undefined;
  /** The job as it was last seen. */
  readonly job?: Job | undefined;
}

/** What is known of the rows of a batch, kept in a file that survives the process. */
export interface Journal {
  readonly path: string;
  /** The last state of a row. */
  of(key: string): RowState | undefined;
  states(): Iterable<RowState>;
  note(key: string, state: RowState): void;
}

const STATES = ['sending', 'accepted', 'refused', 'ended'];

/**
 * Opens the journal of a batch. It is only appended to, a line at a time, so that a process that is killed loses the line that
 * it was writing at most. A line that was cut is skipped: the row's key finds its job again.
 */
export function openJournal(path: string): Journal {
  const known = new Map<string, RowState>();
  let text = '';
  try {
    if (existsSync(path)) text = readFileSync(path, 'utf8');
    // The next line does not go on with one that was cut.
    appendFileSync(path, text === '' || text.endsWith('\n') ? '' : '\n');
  } catch (cause) {
    throw new UsageError(`The journal of the batch cannot be written: ${reasonOf(cause)}`, { cause });
  }
  for (const line of text.split('\n')) {
    const record = parse(line);
    if (record) known.set(record.key, record.state);
  }
  return {
    path,
    of: (key) => known.get(key),
    states: () => known.values(),
    note(key, state) {
      known.set(key, state);
      appendFileSync(path, `${JSON.stringify({ key, ...state })}\n`);
    },
  };
}

function parse(line: string): { readonly key: string; readonly state: RowState } | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (!isFields(value) || typeof value.key !== 'string' || !STATES.includes(String(value.state))) return undefined;
    const { key, ...state } = value;
    return { key, state: { attempt: 0, ...state } as RowState };
  } catch {
    return undefined;
  }
}
