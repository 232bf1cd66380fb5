import { GenClient } from 'gen-client';

/** The app's client, on the server only. It reads GEN_API_KEY, GEN_BASE_URL, and GEN_WEBHOOK_SECRET when a call needs them. */
export const client = new GenClient();
