// When the periods of a budget begin and end.

/** How long the tokens of a budget last: a UTC day or month, for ever, or a number of milliseconds from the first create. */
export type BudgetPeriod = 'day' | 'month' | 'total' | number;

/** A period. */
export interface Period {
  /** 0 for one without a start: `total`, and a number of milliseconds that has not begun. */
  readonly startMs: number;
  /** Null for one without an end. */
  readonly endMs: number | null;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** The period at a time. One that is a number of milliseconds goes on from `sinceMs`, 0 for one that has not begun. */
export function periodAt(per: BudgetPeriod, nowMs: number, sinceMs: number): Period {
  if (per === 'total') return { startMs: 0, endMs: null };
  if (per === 'day') {
    const day = Math.floor(nowMs / DAY_MS) * DAY_MS;
    return { startMs: day, endMs: day + DAY_MS };
  }
  if (per === 'month') {
    const now = new Date(nowMs);
    const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
    return { startMs: Date.UTC(year, month), endMs: Date.UTC(year, month + 1) };
  }
  const isRunning = sinceMs > 0 && nowMs < sinceMs + per;
  return isRunning ? { startMs: sinceMs, endMs: sinceMs + per } : { startMs: 0, endMs: null };
}

/** Until when a create that lost its answer stays reserved: the end of the next period, or a day where there is none. */
export function lostUntilMs(per: BudgetPeriod, nowMs: number, sinceMs: number): number {
  const endMs = periodAt(per, Math.max(nowMs, sinceMs), sinceMs).endMs;
  if (typeof per === 'number') return (endMs ?? nowMs) + per;
  if (endMs === null) return nowMs + DAY_MS;
  return periodAt(per, endMs, endMs).endMs ?? endMs;
}

/** How long a store keeps a budget after its last change. A total is kept for ten years. */
export function keptMs(per: BudgetPeriod): number {
  if (per === 'total') return 3_650 * DAY_MS;
  // The learned prices outlive the period.
  return 2 * (typeof per === 'number' ? per : 31 * DAY_MS) + 40 * DAY_MS;
}
