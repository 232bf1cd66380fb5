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

/** Records each phase of a wait's trace. */
function listen() {
  const reported: [phase: string, trace: WaitTrace][] = [];
  const tell = (phase: string) => (trace: unknown) => void reported.push([phase, trace as WaitTrace]);
  const subscribers = {
    start: tell('start'),
    end: tell('end'),
    asyncStart: tell('asyncStart'),
    asyncEnd: tell('asyncEnd'),
    error: tell('error'),
  };
  const channel = tracingChannel('gen-client:wait');
  channel.subscribe(subscribers);
  stops.push(() => channel.unsubscribe(subscribers));
  return reported;
}

describe('a traced wait', () => {
  it("throws if its job failed, although the trace isn't a failure", async () => {
    const sandbox = createSandbox({ clock: 'manual' });
    const client = sandbox.client();
    const reported = listen();
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

  it('records the error if it ended without a final job', async () => {
    const sandbox = createSandbox({ clock: 'manual', jobDurationMs: 600_000 });
    const client = sandbox.client();
    const { job } = await client.videos.create({ prompt: 'a fox' });
    const reported = listen();
    const wait = rejection(client.waitForJob(job, { timeoutMs: 5_000 }));
    await sandbox.advance(5_000);
    const error = await wait;
    expect(error).toMatchObject({ name: 'WaitTimeoutError', jobId: job.id, timeoutMs: 5_000 });
    expect(reported.map(([phase]) => phase)).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
    expect(reported.at(-1)?.[1]).toEqual({ jobId: job.id, error });
  });
});
