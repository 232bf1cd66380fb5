import type { AccountChoice, Sandbox, SandboxSnapshot } from './contract.js';
import { withControl } from './control/mount.js';
import { createApp } from './http/app.js';
import { createHandler } from './http/handle-request.js';
import { createFetch } from './http/wire.js';
import { addKey, MAIN_ACCOUNT, openAccount } from './service/accounts.js';
import { finishJob, isFinished, moveJob } from './service/engine.js';
import { viewSandboxJob } from './service/job-view.js';
import { credit, tokensFor } from './service/ledger.js';
import { createMediaShelf } from './service/media-shelf.js';
import { redeliver, retryDelivery } from './service/webhooks.js';
import { Timeline } from './world/clock.js';
import { checkFault } from './world/faults.js';
import { type SandboxOptions, settingsOf } from './world/options.js';
import { endOf, type Outcome } from './world/outcomes.js';
import { createRandom, secretText } from './world/random.js';
import { type Account, createState, overwriteState, type State, type StoredJob } from './world/store.js';
import type { World } from './world/world.js';

/** What stays the same through a reset. */
interface Identity {
  readonly apiKey: string;
  readonly webhookSecret: string;
}

/**
 * Makes the documented service in memory. It is stateful, strict, deterministic, and able to misbehave on purpose. No port and
 * no Node API is needed. Throws a TypeError or RangeError that names a wrong option.
 */
export function createSandbox(options: SandboxOptions = {}): Sandbox {
  const world = createWorld(options);
  const identity = {
    apiKey: options.apiKey ?? secretText('sk_sandbox'),
    webhookSecret: options.webhookSecret ?? secretText('whsec'),
  };
  settle(world, identity);
  const handle = withControl(createHandler(world, createApp(world)), async () => {
    const { createControl } = await import('./control/index.js');
    return createControl({ sandbox, fileOf: (id) => finishedFile(world, id) });
  });
  const sandbox: Sandbox = {
    ...identity,
    baseUrl: world.settings.baseUrl,
    fetch: createFetch(handle),
    handle,
    listen: async ({ port = 0, host = '127.0.0.1' } = {}) => {
      const { serve } = await import('./http/serve.js');
      return serve(handle, { port, host });
    },
    ...timeControls(world),
    ...rules(world),
    get dispatch() {
      return world.state.dispatch;
    },
    set dispatch(dispatch) {
      world.state.dispatch = dispatch;
    },
    ...accountControls(world),
    ...jobControls(world),
    get requests() {
      return world.state.requests;
    },
    get deliveries() {
      return world.state.deliveries;
    },
    get jobs() {
      world.timeline.catchUp();
      return [...world.state.jobs.values()].map(viewSandboxJob);
    },
    get accounts() {
      return [...world.state.accounts.keys()];
    },
    ...memory(world, identity),
  };
  return sandbox;
}

/** The file of a completed job; undefined for any other. */
function finishedFile({ state, media }: World, id: string) {
  const job = state.jobs.get(id);
  return job?.status === 'completed' ? media.fileOf(job) : undefined;
}

function createWorld(options: SandboxOptions): World {
  const settings = settingsOf(options);
  const state = createState(settings.seed, settings.dispatch);
  const { isManual, speed, startTime } = settings;
  const timeline = new Timeline({
    isManual,
    speed,
    startTime,
    state,
    run(event) {
      if (event.kind === 'wake') timeline.wake(event.id);
      else if (event.kind === 'deliver') retryDelivery(world, event);
      else moveJob(world, event);
    },
  });
  const world: World = {
    settings,
    state,
    timeline,
    random: createRandom(state),
    media: createMediaShelf(),
    inFlight: new Set(),
    storageSecret: secretText('storage'),
    // A manual clock has no pace of its own.
    wireSeconds: (ms) => Math.max(1, Math.ceil(ms / (isManual ? 1 : speed) / 1000)),
  };
  return world;
}

/** The first account and its key. */
function settle(world: World, { apiKey, webhookSecret }: Identity): void {
  openAccount(world, MAIN_ACCOUNT, webhookSecret);
  addKey(world, {}, apiKey);
}

async function settled(world: World): Promise<void> {
  while (world.inFlight.size > 0) await Promise.all(world.inFlight);
}

function timeControls(world: World): Pick<Sandbox, 'now' | 'advance' | 'settled'> {
  // One step at a time: two calls at once must not run the same moments twice.
  let last: Promise<void> = Promise.resolve();
  return {
    now: () => world.timeline.now(),
    advance(ms) {
      if (!(ms >= 0)) throw new RangeError(`advance: ${ms} is refused; give milliseconds of 0 or more.`);
      last = last.then(() => world.timeline.advance(ms, () => settled(world)));
      return last;
    },
    settled: () => settled(world),
  };
}

const FINAL: readonly unknown[] = [undefined, 'completed', 'failed', 'canceled', 'blocked'];

function checkOutcome(outcome: Outcome): Outcome {
  if (FINAL.includes(outcome.status)) return outcome;
  throw new TypeError(`outcome: status "${outcome.status}" is none of completed, failed, canceled, blocked.`);
}

function rules({ state }: World): Pick<Sandbox, 'outcomes' | 'faults'> {
  let count = 0;
  return {
    outcomes: {
      next: (outcome) => void state.outcomes.push(checkOutcome({ ...outcome })),
      clear: () => void state.outcomes.splice(0),
    },
    faults: {
      add(rule) {
        count += 1;
        const id = `fault_${count}`;
        state.faults.push({ id, rule: { ...checkFault(rule) }, seen: 0, struck: 0 });
        return id;
      },
      remove(id) {
        const at = state.faults.findIndex((fault) => fault.id === id);
        return at !== -1 && state.faults.splice(at, 1).length === 1;
      },
      clear: () => void state.faults.splice(0),
      list: () => state.faults.map((fault) => ({ ...fault })),
    },
  };
}

function accountControls(
  world: World,
): Pick<Sandbox, 'createKey' | 'revokeKey' | 'suspend' | 'topUp' | 'ledger' | 'webhookSecretOf'> {
  const find = ({ account = MAIN_ACCOUNT }: AccountChoice = {}): Account => {
    const found = world.state.accounts.get(account);
    if (found) return found;
    throw new Error(`There is no account "${account}"; createKey({ account }) opens one.`);
  };
  return {
    createKey: (options = {}) => addKey(world, options),
    revokeKey(key) {
      const known = world.state.keys.get(key);
      if (known) known.isRevoked = true;
      return known !== undefined;
    },
    suspend(account, isSuspended = true) {
      find({ account }).isSuspended = isSuspended;
    },
    topUp(usd, choice) {
      const account = find(choice);
      credit(account, world.timeline.now(), { type: 'top_up', tokens: tokensFor(usd) });
      return account.freeTokens;
    },
    ledger(choice) {
      world.timeline.catchUp();
      const { freeTokens, reservedTokens, spentTokens, paidTokens, entries } = find(choice);
      return { balanceTokens: freeTokens, reservedTokens, spentTokens, paidTokens, entries: [...entries] };
    },
    webhookSecretOf: (choice) => find(choice).webhookSecret,
  };
}

function jobControls(world: World): Pick<Sandbox, 'finish' | 'redeliver'> {
  const find = (id: string): StoredJob => {
    world.timeline.catchUp();
    const job = world.state.jobs.get(id);
    if (job) return job;
    throw new Error(`There is no job "${id}" in this sandbox.`);
  };
  return {
    finish(id, outcome = {}) {
      finishJob(world, find(id), { end: endOf(checkOutcome(outcome)), at: world.timeline.now() });
    },
    async redeliver(id) {
      const job = find(id);
      if (!isFinished(job)) throw new Error(`The job "${id}" has not ended: it has no event yet.`);
      if (job.webhookUrl === null) throw new Error(`The job "${id}" was created with no webhook_url.`);
      await redeliver(world, job);
    },
  };
}

function memory(world: World, identity: Identity): Pick<Sandbox, 'reset' | 'snapshot' | 'restore'> {
  const { state, settings, timeline } = world;
  const saved = new WeakMap<SandboxSnapshot, State>();
  return {
    reset() {
      overwriteState(state, createState(settings.seed, settings.dispatch));
      settle(world, identity);
      timeline.jump(timeline.now());
    },
    snapshot() {
      timeline.catchUp();
      const snapshot = { takenAt: timeline.now() };
      saved.set(snapshot, structuredClone(state));
      return snapshot;
    },
    restore(snapshot) {
      const kept = saved.get(snapshot);
      if (kept === undefined) throw new TypeError('restore: this is no snapshot of this sandbox.');
      overwriteState(state, structuredClone(kept));
      timeline.jump(snapshot.takenAt);
    },
  };
}
