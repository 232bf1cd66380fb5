import { afterReal } from '../world/real-time.js';
import type { World } from '../world/world.js';
import type { PageRow, PageState } from './page-state.js';

/** Real milliseconds in which changes are gathered. */
const GATHER_MS = 60;
/** Real milliseconds between two signs of life: without them a connection that is gone would stay open. */
const HEARTBEAT_MS = 15_000;

/** A list as it changed: its keys in order, and the rows that are new or different. */
interface ListChange {
  readonly keys: readonly string[];
  readonly rows: readonly PageRow[];
}

/**
 * The state of the page as server-sent events: first the whole, then what has changed. While the stream is open, events of the
 * sandbox happen on time. A page that reads slowly gets the changes in fewer messages, and never an old state.
 */
export function liveState(world: World, read: () => PageState): Response {
  let follower: Follower | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      follower = follow(world, read, {
        send: (text) => controller.enqueue(new TextEncoder().encode(text)),
        isFull: () => (controller.desiredSize ?? 0) <= 0,
      });
    },
    pull: () => follower?.resume(),
    cancel: () => follower?.stop(),
  });
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' };
  return new Response(body, { headers });
}

/** Where messages go. */
interface Outlet {
  readonly send: (text: string) => void;
  /** Whether the reader has not taken the last message yet. */
  readonly isFull: () => boolean;
}

/** Who sends the state, and every change of it. */
interface Follower {
  /** The reader has taken what there was. */
  resume(): void;
  stop(): void;
}

function follow(world: World, read: () => PageState, { send, isFull }: Outlet): Follower {
  const changes = changesOf(read);
  const unwatch = world.timeline.watch();
  let cancelSend: (() => void) | undefined;
  let cancelHeartbeat = () => {};
  let isLate = false;
  const sendChange = () => {
    cancelSend = undefined;
    isLate = isFull();
    if (isLate) return;
    const change = changes();
    if (change !== undefined) send(`data: ${JSON.stringify({ ...change, now: world.timeline.now() })}\n\n`);
  };
  const observer = () => {
    cancelSend ??= afterReal(GATHER_MS, sendChange, { holdsProcess: false });
  };
  const beat = () => {
    if (!isFull()) send(`data: ${JSON.stringify({ now: world.timeline.now() })}\n\n`);
    cancelHeartbeat = afterReal(HEARTBEAT_MS, beat, { holdsProcess: false });
  };
  sendChange();
  beat();
  world.observers.add(observer);
  return {
    resume() {
      if (isLate) observer();
    },
    stop() {
      world.observers.delete(observer);
      unwatch();
      cancelSend?.();
      cancelHeartbeat();
    },
  };
}

/** A function that gives what has changed since its last call; undefined for nothing. */
function changesOf(read: () => PageState): () => Record<string, unknown> | undefined {
  let facts = '';
  const lists = new Map<string, Map<string, string>>();
  return () => {
    const state = read();
    const change: Record<string, unknown> = {};
    const text = JSON.stringify(state.facts);
    if (text !== facts) change.facts = state.facts;
    facts = text;
    const changedLists: Record<string, ListChange> = {};
    for (const [name, rows] of Object.entries(state.lists)) {
      const before = lists.get(name);
      const after = new Map(rows.map((row) => [row.key, JSON.stringify(row)]));
      const changed = rows.filter(({ key }) => before?.get(key) !== after.get(key));
      const keys = [...after.keys()];
      const isSame = before !== undefined && changed.length === 0 && keys.join() === [...before.keys()].join();
      if (!isSame) changedLists[name] = { keys, rows: changed };
      lists.set(name, after);
    }
    if (Object.keys(changedLists).length > 0) change.lists = changedLists;
    return Object.keys(change).length > 0 ? change : undefined;
  };
}
