// This version continues with the data that it and earlier versions stored in a user's engine or queue.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { isKnownRecord, loadRun } from '../../src/adapters/bullmq/call-record.js';
import { nextDetachedStep } from '../../src/rules/detached-run.js';
import { createReplayEngine, endOf, json, type Recordings, WORKER_RULES } from './recordings.js';

const FOLDER = new URL('../fixtures/replay/', import.meta.url);
const versions: Recordings[] = readdirSync(FOLDER).map((name) =>
  JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')),
);

describe.each(versions.map((recordings) => [recordings.version, recordings] as const))(
  'a recording of %s',
  (_, { runs, records }) => {
    test.each(runs.map((run) => [run.name, run] as const))(
      'a durable run replays with the same steps and outcome: %s',
      async (_name, { options, steps, end }) => {
        const engine = createReplayEngine(steps);
        expect(await endOf(engine, options)).toEqual(end);
        expect(engine.remaining()).toBe(0);
      },
    );

    test.each(runs.map((run) => [run.name, run] as const))(
      'a durable run can continue from any of its steps: %s',
      async (_name, { options, steps }) => {
        for (let count = 0; count < steps.length; count++) {
          const engine = createReplayEngine(steps.slice(0, count));
          await expect(endOf(engine, options)).rejects.toThrow(`step ${count + 1} is {"step":"${steps[count]?.step}"`);
        }
      },
    );

    test.each(records.map((record, at) => [`${record.name}, record ${at + 1}`, record] as const))(
      'a queued call resumes at its step: %s',
      (_name, { id, data, step, event, next }) => {
        const queueJob = { id, data } as never as Parameters<typeof loadRun>[0];
        expect(isKnownRecord(queueJob.data)).toBe(true);
        const { recover = {} } = queueJob.data;
        const run = loadRun(queueJob, { ...WORKER_RULES, recover });
        expect(json(run.step)).toEqual(step);
        expect(json(nextDetachedStep(run, event as never).step)).toEqual(next);
      },
    );

    test("a newer version's record isn't accepted", () => {
      for (const { id, data } of records) {
        const queueJob = { id, data } as never as Parameters<typeof loadRun>[0];
        expect(isKnownRecord({ ...queueJob.data, version: 2 })).toBe(false);
      }
    });
  },
);
