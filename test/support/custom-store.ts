import { createStore } from '../../src/ledger/stores.js';
import type { Store } from '../../src/store/store.js';

/** Creates a store as a user would: two functions on a database, here a Map. */
export function customStore(): Store {
  const rows = new Map<string, { value: string; untilMs: number }>();
  const versions = new Map<string, number>();
  return createStore({
    async read(group, keys) {
      const nowMs = Date.now();
      const values: Record<string, string> = {};
      for (const key of keys) {
        const row = rows.get(`${group}/${key}`);
        if (row && row.untilMs > nowMs) values[key] = row.value;
      }
      return { version: String(versions.get(group) ?? 0), nowMs, values };
    },
    async write(group, version, changes) {
      if (String(versions.get(group) ?? 0) !== version) return false;
      versions.set(group, Number(version) + 1);
      for (const [key, change] of Object.entries(changes)) {
        if (change === null) rows.delete(`${group}/${key}`);
        else rows.set(`${group}/${key}`, { value: change.value, untilMs: Date.now() + change.ttlMs });
      }
      return true;
    },
  });
}
