import {
  type Fault,
  type FaultPlace,
  type FaultSchedule,
  LOST_ROUTES,
  type OutageKind,
  PAGES,
  randomFor,
} from './simulation/chance.js';

/** One request in this many fails at random. */
const RARE = 25;
const RARE_FAULTS: readonly Fault[] = [
  ...PAGES.flatMap((status) => [true, false].map((isHandled) => ({ kind: 'page' as const, isHandled, status }))),
  ...LOST_ROUTES.map((code) => ({ kind: 'lostResponse' as const, isHandled: true, code })),
  { kind: 'unsent' },
  { kind: 'rejection' },
  { kind: 'lateRequest', ms: 3_000 },
  { kind: 'lateRequest', ms: 90_000 },
];

/** Draws a rare fault for a request. */
function drawFaults(seed: number, { process, nth }: FaultPlace): readonly Fault[] {
  const { next } = randomFor(seed, `request ${nth} of ${process}`);
  const fault = next() * RARE < 1 ? RARE_FAULTS[Math.floor(next() * RARE_FAULTS.length)] : undefined;
  return fault ? [fault] : [];
}

/** Faults set by commands, and rare random ones at requests. */
export class ArmedFaults implements FaultSchedule {
  /** The faults, for a failure's history. */
  readonly injected: string[] = [];
  readonly outages: OutageKind[] = [];
  readonly requests = new Map<number, Fault[]>();
  /** By process: the fault after this many timers and store calls. */
  readonly pauses = new Map<number, { readonly count: number; readonly fault: Fault }>();
  readonly webhooks: Fault[] = [];
  /** By process: the fault of the next call to the shared store. */
  readonly stores = new Map<number, Fault>();

  readonly #seed: number;
  #isOver = false;

  constructor(seed: number) {
    this.#seed = seed;
  }

  at(place: FaultPlace): readonly Fault[] {
    const { of, process, nth } = place;
    const armed = this.#take(of, process);
    const faults = armed.length === 0 && of === 'request' && !this.#isOver ? drawFaults(this.#seed, place) : armed;
    for (const fault of faults) {
      const { kind } = fault;
      this.injected.push(`${process}.${nth}:${kind}`);
      if (kind === 'outage') this.outages.push(fault.how);
    }
    return faults;
  }

  #take(of: FaultPlace['of'], process: FaultPlace['process']): readonly Fault[] {
    if (process === 'w') return this.webhooks.splice(0, 1);
    if (of === 'request') return this.requests.get(process)?.splice(0, 1) ?? [];
    if (of === 'store') {
      const outage = this.stores.get(process);
      this.stores.delete(process);
      return outage ? [outage] : [];
    }
    const { count, fault } = this.pauses.get(process) ?? {};
    if (fault === undefined || count === undefined) return [];
    if (count > 1) this.pauses.set(process, { count: count - 1, fault });
    else this.pauses.delete(process);
    return count > 1 ? [] : [fault];
  }

  /** Stops all faults. */
  clear(): void {
    this.#isOver = true;
    this.requests.clear();
    this.pauses.clear();
    this.stores.clear();
    this.webhooks.length = 0;
  }
}
