import * as workers from 'cloudflare:workers';
import { systemClock } from '../../runtime/clock.js';
import { GROUP_TABLES_SQL, type GroupTable, openGroupTable, type SqlStorageLike } from '../../store/group-table.js';
import type { StoreChanges, StoredValues } from '../../store/store.js';

/** What is used of the state of a Durable Object. */
export interface DurableObjectStateLike {
  /** What the object keeps. */
  readonly storage: {
    /** Its SQLite. */
    readonly sql: SqlStorageLike;
    /** Writes all or nothing. */
    transactionSync<T>(write: () => T): T;
    /** Calls `alarm` at a time in milliseconds since the epoch. */
    setAlarm(timeMs: number): unknown;
  };
}

/** What every Durable Object class has, as the types of Cloudflare's tools see it. */
export interface DurableObjectBase {
  /** Tells the types of Cloudflare's tools that this is a Durable Object. There is no such member at run time. */
  readonly __DURABLE_OBJECT_BRAND: never;
}

const DurableObject: abstract new (ctx: DurableObjectStateLike, env: unknown) => DurableObjectBase =
  workers.DurableObject as never;

/**
 * A Durable Object that keeps what all isolates of one account share, for `durableObjectStore`. Export it from the Worker's
 * main module, bind it, and list it under `new_sqlite_classes` of a migration. It only compares and swaps: it answers every
 * call at once, and everything it knows is in its storage.
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

  /** Reads keys of a group: see `Store.read`. */
  read(group: string, keys: readonly string[]): StoredValues {
    return this.#groups.read(group, keys);
  }

  /** Writes all changes or none: see `Store.write`. */
  write(group: string, version: string, changes: StoreChanges): boolean {
    const isWritten = this.#storage.transactionSync(() => this.#groups.write(group, version, changes));
    if (isWritten && this.#alarmMs === undefined) this.#sweepLater();
    return isWritten;
  }

  /** Called by the runtime: forgets what is over, so that an idle account leaves nothing behind. */
  alarm(): void {
    this.#alarmMs = undefined;
    this.#sweepLater();
  }

  #sweepLater(): void {
    this.#alarmMs = this.#groups.sweep();
    if (this.#alarmMs !== undefined) this.#storage.setAlarm(this.#alarmMs + 1);
  }
}
