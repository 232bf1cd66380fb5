// Creates that wait for room in a budget: first come, first served.
import { budgetName } from '../rules/budget.js';
import { type OpenAsk, type OpenReply, openCreate } from '../rules/ledger.js';
import type { LedgerDraft } from '../rules/ledger-entry.js';
import type { Clock } from '../runtime/clock.js';
import { onAbort, sleep } from '../runtime/deadline.js';
import { keysOf } from './draft.js';

/** How often a budget that other processes use is looked at while creates wait for it. */
const LOOK_MS = 500;
/** Creates that are asked for at once. */
const MOST_ASKED = 64;

/** What the queue needs of its ledger. */
interface OpenQueuePorts {
  readonly ask: <T>(rule: (draft: LedgerDraft) => T, keys: readonly string[]) => Promise<T>;
  readonly clock: Clock;
  /** Whether other processes use the same budgets. */
  readonly isShared: boolean;
}

interface Waiting {
  readonly ask: OpenAsk;
  /** The budgets that count it. */
  readonly names: readonly string[];
  readonly resolve: (reply: OpenReply) => void;
  readonly reject: (error: unknown) => void;
}

/** The creates of one ledger that ask for room. Each answer to a create may make room, so those that wait are asked for again. */
export class OpenQueue {
  readonly #ports: OpenQueuePorts;
  #waiting: Waiting[] = [];
  #isAsking = false;
  #isWoken = false;
  /** How many of those that wait may have room: what decides about them is read at once. */
  #likely = MOST_ASKED;
  #look: (() => void) | undefined;

  constructor(ports: OpenQueuePorts) {
    this.#ports = ports;
  }

  /** Resolves when the create is noted or refused. An abort takes it out of the queue. */
  add(ask: OpenAsk, signal: AbortSignal | undefined): Promise<OpenReply> {
    // On Workers a call must not wait for what another request does.
    if (this.#ports.clock.perRequest) return this.#poll(ask, signal);
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const forget = onAbort(signal, () => {
        this.#waiting = this.#waiting.filter((it) => it !== waiting);
        reject(signal?.reason);
      });
      const settled =
        <T>(settle: (value: T) => void) =>
        (value: T) => {
          forget();
          settle(value);
        };
      const names = ask.entry.budgets.map(budgetName);
      const waiting: Waiting = { ask, names, resolve: settled(resolve), reject: settled(reject) };
      this.#waiting.push(waiting);
      this.#likely = MOST_ASKED;
      this.wake();
    });
  }

  /** Something has changed that may have made room. */
  wake(): void {
    this.#isWoken = true;
    if (!this.#isAsking && this.#waiting.length > 0) void this.#askAll();
  }

  async #poll(ask: OpenAsk, signal: AbortSignal | undefined): Promise<OpenReply> {
    for (;;) {
      const reply = await this.#ports.ask((draft) => openCreate(draft, ask), keysOf(ask.id, ask.entry));
      if (reply.outcome !== 'busy') return reply;
      await sleep(this.#ports.clock, LOOK_MS, signal);
    }
  }

  async #askAll(): Promise<void> {
    this.#isAsking = true;
    // The calls of one moment are asked for together.
    await Promise.resolve();
    while (this.#isWoken && this.#waiting.length > 0) {
      this.#isWoken = false;
      await this.#askOnce();
    }
    this.#isAsking = false;
    this.#lookLater();
  }

  /** Asks for those that came first. A create that waits for a budget lets none behind it have that budget first. */
  async #askOnce(): Promise<void> {
    const waiting = [...this.#waiting];
    let asked: readonly Waiting[] = [];
    try {
      const replies = await this.#ports.ask(
        (draft) => {
          const opened = openAll(draft, waiting);
          asked = [...opened.keys()];
          return opened;
        },
        [...new Set(waiting.slice(0, this.#likely).flatMap(({ ask }) => keysOf(ask.id, ask.entry)))],
      );
      const settled = [...replies].filter(([, { outcome }]) => outcome !== 'busy');
      const gone = new Set(settled.map(([it]) => it));
      this.#waiting = this.#waiting.filter((it) => !gone.has(it));
      for (const [{ resolve }, reply] of settled) resolve(reply);
      this.#likely = settled.length > 0 ? MOST_ASKED : 1;
      if (settled.length > 0) this.#isWoken = true;
    } catch (error) {
      // Only those who asked are refused. The others ask for themselves.
      const gone = new Set(asked.length > 0 ? asked : waiting.slice(0, MOST_ASKED));
      this.#waiting = this.#waiting.filter((it) => !gone.has(it));
      this.#isWoken = true;
      for (const { reject } of gone) reject(error);
    }
  }

  #lookLater(): void {
    this.#look?.();
    this.#look = undefined;
    const { clock, isShared } = this.#ports;
    if (this.#waiting.length > 0 && isShared) this.#look = clock.after(LOOK_MS, () => this.wake());
  }
}

/** Opens what has room, as far as it is asked for in one step. */
function openAll(draft: LedgerDraft, waiting: readonly Waiting[]): Map<Waiting, OpenReply> {
  const taken = new Set<string>();
  const replies = new Map<Waiting, OpenReply>();
  for (const it of waiting) {
    if (replies.size >= MOST_ASKED) break;
    if (it.names.some((name) => taken.has(name))) continue;
    const reply = openCreate(draft, it.ask);
    if (reply.outcome === 'busy') taken.add(budgetName(reply.budget));
    replies.set(it, reply);
  }
  return replies;
}
