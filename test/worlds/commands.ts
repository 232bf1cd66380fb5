// A world's events as fast-check commands, so that a failing history shrinks.
import fc from 'fast-check';
import { type Fault, LOST_ROUTES, OUTAGES, PAGES } from './simulation/chance.js';
import { ENDS, KINDS, type Task } from './tasks.js';
import { MAX_OUTAGE_MS, MAX_STOP_MS, PROCESSES, type World } from './world.js';

/** Commands need no model: each may run at any time. */
type Model = Record<string, never>;
type Command = fc.AsyncCommand<Model, World, true>;

const commandOf = (name: string, happen: (world: World) => unknown): Command => ({
  check: async () => true,
  async run(_model, world) {
    await happen(world);
    // Finish all work that needs no timer before the next command.
    await world.advance(0);
  },
  toString: () => name,
});

const process = fc.nat({ max: PROCESSES - 1 });
const slowMs = fc.constantFrom(0, 1_500, 20_000, 150_000);

const task: fc.Arbitrary<Omit<Task, 'id' | 'isStarted'>> = fc.record({
  process,
  kind: fc.constantFrom(...KINDS),
  end: fc.constantFrom(...ENDS),
  slowMs,
  hasWebhook: fc.boolean(),
});

const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({ kind: fc.constant('kill' as const), isHandled: fc.boolean() }),
  fc.record({
    kind: fc.constant('lostResponse' as const),
    isHandled: fc.boolean(),
    code: fc.constantFrom(...LOST_ROUTES),
  }),
  fc.record({ kind: fc.constant('page' as const), isHandled: fc.boolean(), status: fc.constantFrom(...PAGES) }),
  fc.record({ kind: fc.constantFrom('unsent' as const, 'rejection' as const) }),
  fc.record({ kind: fc.constant('lateRequest' as const), ms: fc.constantFrom(3_000, 30_000, 90_000) }),
  fc.record({ kind: fc.constant('slow' as const), ms: fc.constantFrom(2_000, 40_000, 90_000) }),
  fc.record({ kind: fc.constant('clock' as const), ms: fc.constantFrom(-3_600_000, -10_000, 10_000, 3_600_000) }),
);

const webhookFault: fc.Arbitrary<Fault> = fc.oneof(
  fc.constant({ kind: 'lostWebhook' } as const),
  fc.record({ kind: fc.constant('lateWebhook' as const), ms: fc.constantFrom(1_000, 120_000, 600_000) }),
);

const KILL: Fault = { kind: 'kill', isHandled: false };
const stopMs = fc.constantFrom(8_000, 45_000, MAX_STOP_MS);

const title = (name: string, value: unknown) => `${name}(${JSON.stringify(value)})`;

/** All events, weighted toward tasks and time. */
export const worldEvents = fc.commands<Model, World, true>(
  [
    task.map((drawn) => commandOf(title('start', drawn), (world) => world.startTask(drawn))),
    fc.tuple(task, fc.integer({ min: 2, max: 4 })).map(([drawn, count]) =>
      commandOf(title(`start ${count} times`, drawn), (world) => {
        for (let at = 0; at < count; at++) world.startTask(drawn);
      }),
    ),
    fc.record({ drawn: task, faults: fc.array(fault, { minLength: 1, maxLength: 3 }) }).map(({ drawn, faults }) =>
      commandOf(title('start', { ...drawn, faults }), (world) => {
        world.faults.requests.set(drawn.process, [...faults]);
        world.startTask(drawn);
      }),
    ),
    fc.array(task, { minLength: 3, maxLength: 5 }).map((drawn) =>
      commandOf(`start ${drawn.length} under the budget`, (world) => {
        for (const budgetTask of drawn) world.startTask({ ...budgetTask, kind: 'budget' });
      }),
    ),
    fc
      .constantFrom(10, 1_000, 15_000, 130_000)
      .map((ms) => commandOf(title('advance', ms), (world) => world.advance(ms))),
    fc.record({ process, faults: fc.array(fault, { minLength: 1, maxLength: 3 }) }).map((armed) =>
      commandOf(title('next requests', armed), ({ faults }) => {
        faults.requests.set(armed.process, [...(faults.requests.get(armed.process) ?? []), ...armed.faults]);
      }),
    ),
    fc
      .record({ process, count: fc.integer({ min: 1, max: 30 }) })
      .map((armed) =>
        commandOf(
          title('kill after pauses', armed),
          ({ faults }) => void faults.pauses.set(armed.process, { count: armed.count, fault: KILL }),
        ),
      ),
    process.map((at) => commandOf(title('kill', at), (world) => world.kill(at))),
    fc.record({ process, count: fc.integer({ min: 1, max: 30 }), ms: stopMs }).map((armed) =>
      commandOf(title('stop after pauses', armed), ({ faults }) => {
        faults.pauses.set(armed.process, { count: armed.count, fault: { kind: 'stop', ms: armed.ms } });
      }),
    ),
    fc
      .record({ process, ms: stopMs })
      .map((stop) => commandOf(title('stop', stop), (world) => world.stop(stop.process, stop.ms))),
    fc
      .record({ process, how: fc.constantFrom(...OUTAGES), ms: fc.constantFrom(2_000, 20_000, MAX_OUTAGE_MS) })
      .map(({ process: at, how, ms }) =>
        commandOf(
          title('next store call', { process: at, how, ms }),
          ({ faults }) => void faults.stores.set(at, { kind: 'outage', how, ms }),
        ),
      ),
    fc.record({ drawn: task, count: fc.integer({ min: 3, max: 25 }) }).map(({ drawn, count }) =>
      commandOf(title('queue, and kill every worker after pauses', { ...drawn, count }), (world) => {
        for (let at = 0; at < PROCESSES; at++) world.faults.pauses.set(at, { count, fault: KILL });
        world.startTask({ ...drawn, kind: 'queue' });
      }),
    ),
    fc.constant(commandOf('queue a record of a newer version', (world) => world.queueNewer())),
    webhookFault.map((drawn) =>
      commandOf(title('next webhook', drawn), (world) => {
        world.faults.webhooks.push(drawn);
        world.reach(drawn.kind === 'lostWebhook' ? 'webhook lost' : 'webhook late');
      }),
    ),
    fc
      .record({ process, ms: fc.constantFrom(-3_600_000, -400_000, 400_000, 86_400_000) })
      .map((step) => commandOf(title('set clock', step), (world) => world.stepClock(step.process, step.ms))),
    fc.constant(commandOf('rotate key', (world) => world.rotateKey())),
    process.map((at) => commandOf(title('forge', at), (world) => world.forge(at))),
  ],
  { maxCommands: 14 },
);
