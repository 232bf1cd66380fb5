const SAMPLE_MS = 300;
/** With a smaller share of a core, a test measures the machine, not the code. */
const MIN_SHARE = 0.5;

/**
 * Returns true and logs a message if this process gets too little CPU for an assertion about time. Call it only after the
 * assertion has failed: it keeps the process busy for 0.3 s.
 */
export function isTooSlow(assertion: string): boolean {
  const share = coreShare();
  if (share >= MIN_SHARE) return false;
  console.warn(`skipped: ${assertion}, with ${Math.round(share * 100)} % of a core`);
  return true;
}

/** Returns this process's share of a core: 1 on a quiet machine. */
function coreShare(): number {
  const startMs = performance.now();
  const startUsage = process.cpuUsage();
  while (performance.now() - startMs < SAMPLE_MS);
  const { user, system } = process.cpuUsage(startUsage);
  return (user + system) / 1000 / (performance.now() - startMs);
}
