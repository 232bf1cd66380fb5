import { GenError } from '../../errors/index.js';
import { journalError, journalName, timestamp } from '../../ledger/shared-journal.js';
import { outcomeUnderKey } from '../../rules/fate.js';
import type { Journal, JournalEntry, OpenedEntry } from '../../rules/journal.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { systemClock, wallOf } from '../../runtime/clock.js';
import { startDeadline } from '../../runtime/deadline.js';
import { isFields } from '../../schemas/envelope.js';
import type { Call, Core, Layer } from '../call.js';

/** How long a call waits for an entry that comes after its answer. The write goes on by itself. */
const NOTE_WAIT_MS = 2_000;

/**
 * Writes a create to the journal before it is sent, and what became of it afterwards. It is the layer below the uploads,
 * so that the entry has their ids.
 */
export const journaled: Layer = async (call, next) => {
  const { core, kind, idempotencyKey: key = '' } = call;
  const { journal } = core.config;
  if (!journal || kind.type !== 'json' || !kind.request.call) return next(call);
  await openEntry(call, journal, openedEntry(call, kind.request.call));
  let answer: Awaited<ReturnType<typeof next>>;
  try {
    answer = await next(call);
  } catch (error) {
    const reason = call.sent.mayHaveArrived ? outcomeUnderKey(error) : 'unsent';
    const at = now(core);
    // Where a job may exist, the create stays open.
    if (reason !== 'lost') await noteIn(core, journal, { phase: 'closed', key, at, reason, ...errorCodeField(error) });
    throw error;
  }
  // A response without the documented shape says nothing: the create stays open.
  const shown = 'failure' in answer.decoded ? undefined : kind.request.shows?.(answer.decoded.data);
  if (shown) {
    const { job, quotedTokens = job.quotedTokenCost } = shown;
    const quote = typeof quotedTokens === 'number' && { quotedTokens };
    await noteIn(core, journal, { phase: 'accepted', key, jobId: job.id, at: now(core), ...quote });
  }
  return answer;
};

function openedEntry({ core, idempotencyKey: key = '', json, label }: Call<unknown>, call: OpenedEntry['call']) {
  const params: unknown = json === undefined ? {} : JSON.parse(json);
  return { key, call, params: isFields(params) ? params : {}, at: now(core), ...(label !== undefined && { label }) };
}

/** Writes the first entry. Where that fails, nothing is sent. */
async function openEntry(call: Call<unknown>, journal: Journal, entry: OpenedEntry): Promise<void> {
  const { core, signal, timeoutMs, idempotencyKey } = call;
  const late = () => new GenError(`no answer within ${timeoutMs} ms (timeoutMs)`, { recovery: 'retry' });
  // A store takes real time, also under the clock of a sandbox.
  const deadline = startDeadline({ clock: systemClock, ms: timeoutMs, signal, late });
  const written = Promise.resolve().then(() => journal.append(entry));
  try {
    await deadline.race(written);
  } catch (cause) {
    // An entry that is written after all must not be sent by a later `resume`.
    const { key, at } = entry;
    const close = () => noteIn(core, journal, { phase: 'closed', key, at, reason: 'unsent' });
    written.then(close, () => undefined);
    signal?.throwIfAborted();
    const message = `${journalName(journal)} could not be written, so the create was not sent: ${reasonOf(cause)}`;
    const error = journalError(message, cause);
    throw Object.assign(error, { idempotencyKey });
  } finally {
    deadline.end();
  }
}

function errorCodeField(error: unknown): { readonly code?: string } {
  return isFields(error) && typeof error.code === 'string' ? { code: error.code } : {};
}

function now({ clock }: Pick<Core, 'clock'>): string {
  return timestamp(wallOf(clock).now());
}

/** Writes an entry that only informs: a failure is a warning. Waits for it, but not for long. */
export async function noteIn({ warn }: Pick<Core, 'warn'>, journal: Journal, entry: JournalEntry): Promise<void> {
  const written = Promise.resolve()
    .then(() => journal.append(entry))
    .catch((reason: unknown) => warn(`${journalName(journal)} could not be written: ${reasonOf(reason)}`));
  let cancel = () => {};
  const late = new Promise<void>((resolve) => {
    cancel = systemClock.after(NOTE_WAIT_MS, resolve);
  });
  await Promise.race([written, late]).finally(() => cancel());
}
