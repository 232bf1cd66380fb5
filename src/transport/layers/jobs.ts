import { heard, traceFailed } from '../../events.js';
import type { Layer } from '../call.js';

/** Passes on what the answer shows of a job: its price, and its state for the listeners and budgets. */
export const jobsSeen: Layer = async (call, next) => {
  const { core, kind, trace } = call;
  const answer = await next(call);
  const { decoded } = answer;
  if ('failure' in decoded) {
    if (trace?.job) traceFailed(heard(core.channels()?.job), trace.job, decoded.failure);
    return answer;
  }
  const shown = kind.type === 'json' ? kind.request.shows?.(decoded.data) : undefined;
  if (shown) await core.jobs.seen(call, shown);
  return answer;
};
