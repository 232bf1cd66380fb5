import { tracingChannel } from 'node:diagnostics_channel';
import { afterEach, describe, expect, it } from 'vitest';
import { JobFailedError } from '../../src/errors/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import type { WaitTrace } from '../../src/transport/events.js';
import { rejection } from '../transport/support.js';

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** Returns a list that receives each phase of a wait's trace. */
function recordPhases() {
  const events: [phase: string, trace: WaitTrace][] = [];
  const record = (phase: string) => (trace: unknown) => void events.push([phase, trace as WaitTrace]);
  const subscribers = {
    start: record('start'),
    end: record('end'),
    asyncStart: record('asyncStart'),
    asyncEnd: record('asyncEnd'),
    error: record('error'),
  };
  const channel = tracingChannel('gen-client:wait');
  channel.subscribe(subscribers);
  stops.push(() => channel.unsubscribe(subscribers));
  return events;
}

describe('a traced wait', () => {
  it('has no error if its job failed', async () => {
    const sandbox = createSandbox({ clock: 'manual' });
    const client = sandbox.client();
    const reported = recordPhases();
    for (const throwOnFailure of [true, false]) {
      sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
      const { job } = await client.videos.create({ prompt: 'a fox' });
      const wait = client.waitForJob(job, { throwOnFailure } as { throwOnFailure: false });
      const outcome = throwOnFailure ? rejection(wait) : wait;
      await sandbox.advance(120_000);
      if (throwOnFailure) expect(await outcome).toBeInstanceOf(JobFailedError);
      else expect(await outcome).toMatchObject({ id: job.id, status: 'failed' });
      const phases = reported.splice(0);
      expect(phases.map(([phase]) => phase)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
      expect(phases.every(([, trace]) => trace.jobId === job.id && trace.error === undefined)).toBe(true);
    }
  });

  it('has the error if it ended without a final job', async () => {
    const sandbox = createSandbox({ clock: 'manual', jobDurationMs: 600_000 });
    const client = sandbox.client();
    const { job } = await client.videos.create({ prompt: 'a fox' });
    const reported = recordPhases();
    const wait = rejection(client.waitForJob(job, { timeoutMs: 5_000 }));
    await sandbox.advance(5_000);
    const error = await wait;
    expect(error).toMatchObject({ name: 'WaitTimeoutError', jobId: job.id, timeoutMs: 5_000 });
    expect(reported.map(([phase]) => phase)).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
    expect(reported.at(-1)?.[1]).toEqual({ jobId: job.id, error });
  });
});
