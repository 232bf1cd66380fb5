const LOOK_MS = 300;
/** With less of a core than this, the machine is measured and not the code. */
const LEAST_SHARE = 0.5;

/**
 * Whether this process gets so little of a core that an assertion about time says nothing, which is then told. Ask after the
 * assertion has failed: it keeps the process busy for 0.3 s.
 */
export function isTooSlow(forWhat: string): boolean {
  const share = coreShare();
  if (share >= LEAST_SHARE) return false;
  console.warn(`left out: ${forWhat}, with ${Math.round(share * 100)} % of a core`);
  return true;
}

/** 1 on a quiet machine. */
function coreShare(): number {
  const begun = performance.now();
  const before = process.cpuUsage();
  while (performance.now() - begun < LOOK_MS);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / (performance.now() - begun);
}
