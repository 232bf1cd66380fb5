// A create that is noted in the ledger: by its call, and by the run that its call belongs to.

import type { Ledger } from '../ledger/ledger.js';
import { closeRun, noteRun } from '../rules/ledger.js';
import type { CreateEntry } from '../rules/ledger-draft.js';
import { keysOf } from '../rules/ledger-draft.js';
import type { JobRunState, RunRules } from '../rules/run-state.js';

export interface OpenedCreate {
  readonly ledger: Ledger;
  readonly id: string;
  readonly by: string;
  readonly asked: CreateEntry;
}

/** The creates of one `createAndWait`: they have one entry, under the key of the first. */
export interface RunOfCreates {
  readonly key: string;
  readonly rules: RunRules | null;
  /** Whether the caller has chosen the key, so that it may come again. */
  readonly hasOwnKey: boolean;
  readonly opened: OpenedCreate[];
  readonly isResumed?: boolean;
}

/** Writes down where a run stands, before it pauses: a process that dies in the pause is resumed there. */
export async function keepRun({ opened }: RunOfCreates, state: JobRunState): Promise<void> {
  const kept = opened.filter(({ asked }) => asked.keeps);
  await Promise.all(
    kept.map(({ ledger, id, asked }) =>
      ledger.soon(ledger.note((draft) => noteRun(draft, id, state), keysOf(id, asked))),
    ),
  );
}

/** The run is over. `told` says whether its program has its outcome. */
export async function endRun({ opened, isResumed }: RunOfCreates, told: boolean): Promise<void> {
  const ended = opened.map(({ ledger, id, by, asked }) => {
    const closed = ledger.note((draft) => closeRun(draft, { id, by, told, isResumed }), keysOf(id, asked));
    return ledger.soon(closed.finally(() => ledger.landed(by)));
  });
  await Promise.all(ended);
}
