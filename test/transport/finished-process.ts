// A program whose only job fails. After that, its store stays open, closes, or hangs, as the argument specifies. The program
// reports the error and its open timers, and exits.
import { createBudget, createStore, GenClient, memoryStore } from '../../src/index.js';

const [storeAtEnd = 'none'] = process.argv.slice(2);
const memory = memoryStore();
let isClosed = false;

function whileOpen<T>(work: () => Promise<T>): Promise<T> {
  if (!isClosed) return work();
  return storeAtEnd === 'hangs' ? new Promise(() => {}) : Promise.reject(new Error('Connection is closed.'));
}

const store = createStore({
  read: (...args) => whileOpen(() => memory.read(...args)),
  write: (...args) => whileOpen(() => memory.write(...args)),
});
const fetch = async (_url: string, { method }: RequestInit) => {
  const status = method === 'POST' ? 'processing' : 'failed';
  const job = { id: 'job_1', mediaType: 'image', status, errorCode: 'generation_failed' };
  return Response.json({ success: true, data: { job, quoted_token_cost: 5 } });
};
const persistence = storeAtEnd === 'none' ? {} : { store, budget: createBudget({ maxTokens: 100, store }) };
const client = new GenClient({ apiKey: 'k', baseUrl: 'https://api.example', fetch, ...persistence });
const wait = client.images.createAndWait({ prompt: 'a fox' }, { pollIntervalMs: 50 });
const error: unknown = await wait.catch((reason) => reason);
isClosed = storeAtEnd !== 'open';
process.send?.(error instanceof Error ? error.name : 'completed');
await new Promise((resolve) => setTimeout(resolve, 500));
process.send?.({ timers: process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length });
