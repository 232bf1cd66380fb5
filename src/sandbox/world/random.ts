/** Returns the next random number, at least 0 and less than 1. */
export type RandomSource = () => number;

/** Creates a seeded source (mulberry32). Its state is a single number, so that a fork can copy it. */
export function createRandom(state: { random: number }): RandomSource {
  return () => {
    state.random = (state.random + 0x6d2b79f5) | 0;
    let bits = state.random;
    bits = Math.imul(bits ^ (bits >>> 15), bits | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 4294967296;
  };
}

export function freshSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
}

const LETTERS = '0123456789abcdefghijklmnopqrstuvwxyz';

/** Returns an ID such as `job_4h2k…`: the prefix, and 16 letters and digits. */
export function randomId(random: RandomSource, prefix: string): string {
  let id = `${prefix}_`;
  for (let at = 0; at < 16; at++) id += LETTERS.charAt(Math.floor(random() * 36));
  return id;
}

/** Returns a secret that doesn't depend on the seed, because sandboxes in one process must not share rate limits. */
export function secretText(prefix: string): string {
  return `${prefix}_${crypto.randomUUID().replaceAll('-', '')}`;
}

export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}
