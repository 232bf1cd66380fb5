import { setTimeout as pause } from 'node:timers/promises';

/** Longest time that an idle connection stays open. */
const KEEP_ALIVE_MS = 5_000;

/**
 * Waits for the connections of earlier test files to close. Their timeouts would count among a test's fake timers: use it as
 * `beforeAll(quiet)` if a file calls `vi.getTimerCount()`.
 */
export async function quiet(): Promise<void> {
  const isConnected = () => process.getActiveResourcesInfo().includes('TCPSocketWrap');
  for (const end = Date.now() + KEEP_ALIVE_MS; isConnected() && Date.now() < end; ) await pause(50);
}
