// The limiter before an object that fails, hangs or makes wait; each request says which and tells what was seen.
import { durableObjectLimiter, type SlotTurn } from 'gen-client/cloudflare';

const WAIT: SlotTurn = { granted: false, askMs: 200, waitMs: 700, queued: 3, isPaused: true };
const GRANT: SlotTurn = { granted: true, askMs: 0, waitMs: 0, queued: 0, isPaused: false };

export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const mode = searchParams.get('object');
    const asked: string[] = [];
    const turns = [WAIT, WAIT, GRANT];
    const answer = async <T>(name: string, value: T): Promise<T> => {
      asked.push(name);
      if (mode === 'fails') throw new Error('moved');
      if (mode === 'hangs') await new Promise(() => {});
      if (mode === 'overloaded') throw Object.assign(new Error('too much to do'), { overloaded: true });
      return value;
    };
    const stub = {
      takeTurn: () => answer('turn', mode === 'waits' ? turns.shift() : GRANT),
      settleSlot: (_: object, outcome: string) => answer(outcome, undefined),
      pauseLane: () => answer('pause', undefined),
    };
    const errors: string[] = [];
    const waits: object[] = [];
    const limiter = durableObjectLimiter({ idFromName: () => 'id', get: () => stub }, 'main', {
      limits: { 'videos.create': { limit: 2, windowMs: 400 } },
      timeoutMs: 50,
      onUnavailable: searchParams.get('then') === 'throw' ? 'throw' : 'local',
      onError: (error) => void errors.push((error as Error).message),
    });
    const signal = pathname === '/abort' ? AbortSignal.timeout(100) : undefined;
    const start = Date.now();
    const call = async () => {
      try {
        const release = await limiter.acquire('videos.create', signal, (wait) => void waits.push(wait));
        const at = Date.now() - start;
        release();
        release();
        return at;
      } catch (error) {
        const { name, cause } = error as Error;
        return `${name}: ${(cause as Error | undefined)?.message}`;
      }
    };
    const calls = await Promise.all(Array.from({ length: Number(searchParams.get('calls') ?? 1) }, call));
    await new Promise((resolve) => setTimeout(resolve, 20));
    return Response.json({ calls, errors, waits, asked });
  },
};
