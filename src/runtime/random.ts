// The only source of chance in the package. A simulation passes its own, seeded, with its clock.

/** Where chance comes from. */
export interface Random {
  /** A number from 0 up to, and without, 1. */
  next(): number;
  /** A random id in the form of a UUID. */
  uuid(): string;
}

/** The runtime's own randomness. */
export const systemRandom: Random = {
  next: () => Math.random(),
  uuid: () => crypto.randomUUID(),
};
