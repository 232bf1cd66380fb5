/** Milliseconds that a test waits for something to happen: ten times what a quiet machine needs, and more. */
export const PATIENCE_MS = 60_000;
