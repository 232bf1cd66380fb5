import type { LaneLimit } from '../rules/limits.js';
import { type Places, takePlace } from '../rules/places.js';
import type { Clock, Random } from '../runtime/clock.js';
import type { ClientAccount } from './account.js';
import { memoryStore, type SharedStore, type SharedValues, updateShared } from './shared-store.js';

/** Who asks for a place. */
export interface PlaceRequest {
  readonly lane: string;
  readonly limit: LaneLimit;
  /** The same place is given for the same key, however often it is asked for. */
  readonly key: string;
  /** The rate limit was full when the place had come: a new one is given, so many milliseconds from now or later. */
  readonly retryAfterMs?: number | undefined;
}

/** How long a place is kept for a run that comes late. */
const PLACE_KEPT_MS = 60 * 60 * 1000;
const LINE = 'line';

/**
 * The lines of the runs of one account. Runs of all processes get their places first come, first served, and are in no
 * process while they wait. Requests of one process follow each other, so that they do not compete for the store.
 */
export class AccountPlaces {
  readonly #idIn: ClientAccount['idIn'];
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #ownStore: SharedStore;
  readonly #last = new WeakMap<SharedStore, Promise<unknown>>();

  constructor({
    account,
    clock,
    random,
  }: { readonly account: ClientAccount; readonly clock: Clock; readonly random: Random }) {
    this.#idIn = account.idIn;
    this.#clock = clock;
    this.#random = random;
    this.#ownStore = memoryStore(clock);
  }

  /** Milliseconds until the place of a run comes; 0 when it has come. Without a store, the line is that of this process. */
  async take(asked: PlaceRequest, store: SharedStore = this.#ownStore): Promise<number> {
    // Where promises end with their request, no call may wait for another one.
    if (this.#clock.perRequest) return this.#ask(asked, store);
    const place = (this.#last.get(store) ?? Promise.resolve()).then(() => this.#ask(asked, store));
    this.#last.set(
      store,
      place.catch(() => {}),
    );
    return place;
  }

  #ask({ lane, limit, key, retryAfterMs }: PlaceRequest, store: SharedStore): Promise<number> {
    const group = `places/${this.#idIn(store)}/${lane}`;
    const own = `run/${key}`;
    const where = { store, group, clock: this.#clock, random: this.#random };
    return updateShared(where, [LINE, own], ({ nowMs, values }: SharedValues) => {
      const given = Number(values[own] ?? Number.NaN);
      // A run that was refused has had its place, whatever the clocks say.
      if (retryAfterMs === undefined && !Number.isNaN(given)) {
        return { changes: {}, result: Math.max(0, given - nowMs) };
      }
      const { atMs, places } = takePlace(parsedPlaces(values[LINE]), limit, nowMs + (retryAfterMs ?? 0));
      const ttlMs = atMs - nowMs + limit.windowMs + PLACE_KEPT_MS;
      const changes = { [LINE]: { value: JSON.stringify(places), ttlMs }, [own]: { value: String(atMs), ttlMs } };
      return { changes, result: atMs - nowMs };
    });
  }
}

function parsedPlaces(value: string | undefined): Places {
  const places: unknown = JSON.parse(value ?? '[]');
  return Array.isArray(places) ? places.map(Number) : [];
}
