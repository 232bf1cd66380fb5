/** Timeout for waiting in tests: at least ten times what an idle machine needs. */
export const PATIENCE_MS = 60_000;
