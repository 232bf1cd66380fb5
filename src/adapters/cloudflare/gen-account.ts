import * as workers from 'cloudflare:workers';
import { systemClock } from '../../runtime/clock.js';
import { GROUP_TABLES_SQL, type GroupTable, openGroupTable, type SqlStorageLike } from '../../store/group-table.js';
import type { StoreChanges, StoredValues } from '../../store/store.js';

/** The members of a Durable Object's state that {@link GenAccount} uses. */
export interface DurableObjectStateLike {
  /** The object's storage. */
  readonly storage: {
    /** SQLite database. */
    readonly sql: SqlStorageLike;
    /** Runs a function in a transaction. */
    transactionSync<T>(write: () => T): T;
    /** Schedules `alarm`. Accepts milliseconds since the epoch. */
    setAlarm(timeMs: number): unknown;
  };
}

/** The base of a Durable Object class in Cloudflare's types. */
export interface DurableObjectBase {
  /** Type-only marker for Cloudflare's types. It doesn't exist at run time. */
  readonly __DURABLE_OBJECT_BRAND: never;
}

const DurableObject: abstract new (ctx: DurableObjectStateLike, env: unknown) => DurableObjectBase =
  workers.DurableObject as never;

/**
 * Durable Object that stores the shared state of one account, for `durableObjectStore`. Export it from the Worker's main
 * module, bind it, and list it under `new_sqlite_classes` in a migration.
 *
 * @example
 * export { GenAccount } from 'gen-client/cloudflare';
 */
export class GenAccount extends DurableObject {
  readonly #storage: DurableObjectStateLike['storage'];
  readonly #groups: GroupTable;
  #alarmMs: number | undefined;

  /** Called by the runtime. */
  constructor(ctx: DurableObjectStateLike, env: unknown) {
    super(ctx, env);
    this.#storage = ctx.storage;
    ctx.storage.sql.exec(GROUP_TABLES_SQL);
    this.#groups = openGroupTable(ctx.storage.sql, () => systemClock.now());
  }

  /** Reads keys of a group. See `Store.read`. */
  read(group: string, keys: readonly string[]): StoredValues {
    return this.#groups.read(group, keys);
  }

  /** Writes all changes or none. See `Store.write`. */
  write(group: string, version: string, changes: StoreChanges): boolean {
    const isWritten = this.#storage.transactionSync(() => this.#groups.write(group, version, changes));
    if (isWritten && this.#alarmMs === undefined) this.#sweepLater();
    return isWritten;
  }

  /** Called by the runtime. Deletes expired values. */
  alarm(): void {
    this.#alarmMs = undefined;
    this.#sweepLater();
  }

  #sweepLater(): void {
    this.#alarmMs = this.#groups.sweep();
    if (this.#alarmMs !== undefined) this.#storage.setAlarm(this.#alarmMs + 1);
  }
}
