const LOOK_MS = 300;

/** The share of a core that this process gets: 1 on a quiet machine. Keeps the process busy for 0.3 s. */
export function coreShare(): number {
  const begun = performance.now();
  const before = process.cpuUsage();
  while (performance.now() - begun < LOOK_MS);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / (performance.now() - begun);
}
