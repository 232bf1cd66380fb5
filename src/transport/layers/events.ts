import { heard, type JobTrace, type RequestTrace, traced, tracedStart } from '../../events.js';
import type { Core, Layer } from '../call.js';

/** Whether a hook, a logger or a diagnostics channel listens, so that a call has to be traced. */
export function isObserved(core: Core): boolean {
  const channels = core.channels();
  return core.observer() !== undefined || (heard(channels?.request) ?? heard(channels?.job)) !== undefined;
}

/** Traces the call: from its start to its end, and the job of a create from the same start. */
export const observed: Layer = (call, next) => {
  const { core, kind, name, label } = call;
  const channels = core.channels();
  const { call: creates, body, waits } = kind.type === 'json' ? kind.request : {};
  const jobs = creates && heard(channels?.job);
  const job: JobTrace | undefined = creates && jobs && { call: creates, params: withoutFiles(body), label, waits };
  // The URL of a direct upload is its credential.
  const path = kind.type === 'transfer' ? undefined : call.path;
  const trace: RequestTrace = { callId: core.config.random.uuid(), name, path, job, attempts: 0, laneWaitMs: 0 };
  const send = () => traced(heard(channels?.request), trace, () => next({ ...call, trace }));
  return job ? tracedStart(jobs, job, send) : send();
};

/** The params with a description in place of each file: a trace lives as long as its job, and must not keep the bytes. */
function withoutFiles(value: unknown): unknown {
  if (typeof value === 'function') return {};
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutFiles);
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === Object.prototype || prototype === null;
  if (!isPlain || 'stream' in value) return fileSummary(value);
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, withoutFiles(field)]));
}

/** The name, type and size of a file, as far as it has them. */
function fileSummary(file: object): object {
  const [name, type, size] = ['name', 'type', 'size'].map((field) => fieldOf(file, field));
  const bytes = size ?? fieldOf(file, 'byteLength');
  return {
    ...(typeof name === 'string' && { name }),
    ...(typeof type === 'string' && { type }),
    ...(typeof bytes === 'number' && { size: bytes }),
  };
}

/** A field of a file, which may be a path whose file is not there. */
function fieldOf(file: object, field: string): unknown {
  try {
    return Reflect.get(file, field);
  } catch {
    return undefined;
  }
}
