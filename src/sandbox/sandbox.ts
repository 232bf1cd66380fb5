import { GenError } from '../errors/index.js';
import { type Clock, systemRandom } from '../runtime/clock.js';
import { formatValue } from '../schemas/format-value.js';
import type { AccountChoice, SandboxService } from './control/contract.js';
import { createControl } from './control/index.js';
import { prefixOf } from './http/exchange.js';
import { createHandler } from './http/handle-request.js';
import { createFetch, type Handle } from './http/network.js';
import { addKey, credit, MAIN_ACCOUNT, openAccount, tokensFor } from './service/accounts.js';
import { delivered, finishJob, runEvent } from './service/engine.js';
import { checkFault, checkOutcome, endOf } from './world/faults-and-outcomes.js';
import { checkAdvance, checkDispatch, type SandboxOptions, type Settings, settingsOf } from './world/options.js';
import { type Account, createState, viewSandboxJob } from './world/state.js';
import { createWorld, type World } from './world/world.js';

/** A sandbox with the internals that its clients need. */
export interface OpenSandbox {
  readonly service: SandboxService;
  /** Clock for clients. */
  readonly clock: Clock;
  /** `fetch` for clients that use {@link OpenSandbox.clock}. */
  readonly clientFetch: typeof fetch;
  /** Advances the clock to the next event or timer and runs it. Returns false if there is none. */
  step(): boolean;
  /** Returns an independent copy of the current state, with its own base URL. */
  fork(): OpenSandbox;
}

/** Opens a sandbox. Throws a GenError for an invalid or unknown option. */
export function openSandbox(options: SandboxOptions, own: { readonly signsInOwnTime?: boolean } = {}): OpenSandbox {
  const world = createWorld(settingsOf(options, own), runEvent);
  openFirstAccount(world);
  return assemble(world);
}

function assemble(world: World): OpenSandbox {
  const { activity, timeline, settings, state } = world;
  const handleService = createHandler(world);
  const handle: Handle = (request, arrival) => control(request) ?? handleService(request, arrival);
  let hasClients = false;
  const settled = async () => {
    await delivered(world);
    if (hasClients) await activity.settle();
  };
  const service: SandboxService = {
    apiKey: settings.apiKey,
    webhookSecret: settings.webhookSecret,
    baseUrl: settings.baseUrl,
    fetch: createFetch(handle, activity, false),
    handle: (request) => handle(request, { signal: request.signal }),
    listen: async (options) => {
      const { serve } = await import('./http/serve.js');
      return serve(service.handle, options, prefixOf(settings.baseUrl));
    },
    ...timeControls(world, settled),
    ...ruleControls(world),
    get dispatch() {
      return state.dispatch;
    },
    set dispatch(dispatch) {
      checkDispatch(dispatch);
      state.dispatch = dispatch;
    },
    ...accountControls(world),
    finish(id, outcome = {}) {
      timeline.catchUp();
      const job = state.jobs.get(id);
      if (job === undefined)
        throw new GenError(`finish: this sandbox has no job ${formatValue(id)}. See sandbox.jobs.`);
      finishJob(world, job, { end: endOf(checkOutcome('finish', outcome)), at: timeline.now() });
    },
    get seed() {
      return state.seed;
    },
    get requests() {
      return state.requests;
    },
    get deliveries() {
      return state.deliveries;
    },
    get jobs() {
      timeline.catchUp();
      return [...state.jobs.values()].map(viewSandboxJob);
    },
    reset() {
      Object.assign(state, createState(settings));
      openFirstAccount(world);
      timeline.catchUp();
    },
  };
  const control = createControl(world, service);
  return {
    service,
    get clock() {
      hasClients = true;
      return timeline.clock;
    },
    clientFetch: createFetch(handle, activity, true),
    step: () => timeline.step(),
    fork: () => assemble(copyOf(world)),
  };
}

/** Returns an independent copy with its own base URL, so that clients of the two don't share rate limits. */
function copyOf(origin: World): World {
  const url = new URL(origin.settings.baseUrl);
  // An IP address can't have a subdomain.
  const parent = /^[\d.]+$|^\[/.test(url.hostname) ? 'sandbox.invalid' : url.hostname;
  url.hostname = `fork-${systemRandom.uuid().slice(0, 8)}.${parent}`;
  const settings: Settings = { ...origin.settings, baseUrl: url.href.replace(/(?<!\/)\/+$/, '') };
  origin.timeline.catchUp();
  const world = createWorld(settings, runEvent, origin);
  for (const job of world.state.jobs.values()) job.baseUrl = settings.baseUrl;
  return world;
}

function openFirstAccount(world: World): void {
  openAccount(world, MAIN_ACCOUNT, world.settings.webhookSecret);
  addKey(world, {}, world.settings.apiKey);
}

function timeControls(world: World, settled: () => Promise<void>) {
  const { timeline } = world;
  // One call at a time, so that concurrent calls don't run the same events twice.
  let previousAdvance: Promise<void> = Promise.resolve();
  return {
    now: () => timeline.now(),
    advance(ms) {
      checkAdvance(ms);
      const currentAdvance = previousAdvance.then(() => timeline.advance(ms, settled));
      previousAdvance = currentAdvance.catch(() => {});
      return currentAdvance;
    },
    settled,
  } satisfies Partial<SandboxService>;
}

function ruleControls({ state }: World) {
  return {
    outcomes: {
      next: (outcome) => void state.outcomes.push(checkOutcome('outcomes.next', outcome)),
      clear: () => void state.outcomes.splice(0),
    },
    faults: {
      add(rule) {
        const checkedRule = checkFault(rule);
        state.faultCount += 1;
        const id = `fault_${state.faultCount}`;
        state.faults.push({ id, rule: checkedRule, seen: 0, struck: 0 });
        return id;
      },
      remove(id) {
        const index = state.faults.findIndex((fault) => fault.id === id);
        return index !== -1 && state.faults.splice(index, 1).length === 1;
      },
      clear: () => void state.faults.splice(0),
      list: () => state.faults.map((fault) => ({ ...fault })),
    },
  } satisfies Partial<SandboxService>;
}

function accountControls(world: World) {
  const find = ({ account = MAIN_ACCOUNT }: AccountChoice = {}): Account => {
    const match = world.state.accounts.get(account);
    if (match) return match;
    throw new GenError(`There is no account ${formatValue(account)}. Create it with createKey({ account }).`);
  };
  return {
    createKey: (options = {}) => addKey(world, options),
    revokeKey(key) {
      const entry = world.state.keys.get(key);
      if (entry) entry.isRevoked = true;
      return entry !== undefined;
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
  } satisfies Partial<SandboxService>;
}
