import { GenClient } from 'gen-client';

/** The app's client, for the server only. Its calls read GEN_API_KEY, GEN_BASE_URL, and GEN_WEBHOOK_SECRET. */
export const client = new GenClient();
