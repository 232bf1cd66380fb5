// A create that is noted in the ledger: by its call, and by the run that its call belongs to.
import { keysOf } from '../ledger/draft.js';
import type { Ledger } from '../ledger/ledger.js';
import { closeRun, noteRun } from '../rules/ledger.js';
import type { CreateEntry } from '../rules/ledger-entry.js';
import type { JobRunState, RunRules } from '../rules/run-state.js';
import { systemClock } from '../runtime/clock.js';

/** The entry of a create in one ledger, and the call that works on it. */
export interface OpenedCreate {
  readonly ledger: Ledger;
  readonly id: string;
  readonly by: string;
  /** The entry as it was asked for. */
  readonly asked: CreateEntry;
}

/** The creates of one `createAndWait`: they have one entry, under the key of the first. */
export interface RunOfCreates {
  readonly key: string;
  readonly rules: RunRules | null;
  /** Whether the caller has chosen the key, so that it may come again. */
  readonly hasOwnKey: boolean;
  /** Where the first create has opened the entry. */
  readonly opened: OpenedCreate[];
}

/** How long a call waits for all that is written after its answer. The writes go on by themselves. */
const NOTES_MS = 2_000;

/** Waits for what is written after an answer, in all no longer than two seconds for a call. */
export async function soon(call: { notesEndMs?: number | undefined }, work: Promise<unknown>): Promise<void> {
  call.notesEndMs ??= systemClock.now() + NOTES_MS;
  let cancel = () => {};
  const late = new Promise<void>((resolve) => {
    cancel = systemClock.after(Math.max(0, (call.notesEndMs ?? 0) - systemClock.now()), resolve);
  });
  await Promise.race([work.catch(() => {}), late]).finally(() => cancel());
}

/** Writes down where a run stands, before it pauses: a process that dies in the pause is resumed there. */
export async function keepRun({ opened }: RunOfCreates, state: JobRunState): Promise<void> {
  const kept = opened.filter(({ asked }) => asked.keeps);
  const noted = kept.map(({ ledger, id, asked }) =>
    ledger.note((draft) => noteRun(draft, id, state), keysOf(id, asked)),
  );
  await soon({}, Promise.all(noted));
}

/** The run is over. `told` says whether its program has its outcome. */
export async function endRun({ opened }: RunOfCreates, told: boolean): Promise<void> {
  const ended = opened.map(({ ledger, id, by, asked }) =>
    ledger.note((draft) => closeRun(draft, id, by, told), keysOf(id, asked)).finally(() => ledger.landed(by)),
  );
  await soon({}, Promise.all(ended));
}
