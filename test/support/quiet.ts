import { setTimeout as pause } from 'node:timers/promises';

/** Longest time that an idle connection stays open. */
const KEEP_ALIVE_MS = 5_000;

/**
 * Waits until the connections of earlier test files have closed, because `vi.getTimerCount()` would count their timeouts. Use it as
 * `beforeAll(quiet)`.
 */
export async function quiet(): Promise<void> {
  const isConnected = () => process.getActiveResourcesInfo().includes('TCPSocketWrap');
  for (const end = Date.now() + KEEP_ALIVE_MS; isConnected() && Date.now() < end; ) await pause(50);
}
