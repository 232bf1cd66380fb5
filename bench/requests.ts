// The cost of a call compared with a bare fetch: sequential, and 50 concurrent, against a server in its own process.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { collectGarbage, type Figures, formatSpread, interleaved, ratio, spread, table, verdict } from './frame.js';
import { bare, type Caller, kyAlone, peers as othersAt, own } from './requests/candidates.js';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 21);
/** Calls per round: enough for one or two garbage collections. */
const SEQUENTIAL = 500;
const PARALLEL = 2_000;
/** Calls of each candidate before the first round, so that the compiler has finished. */
const WARMUP = 10_000;
const CONCURRENCY = 50;
const TARGETS = { sequential: 1.3, parallel: 1.5 } as const;
const BASE = 'bare fetch';
const OWN = 'gen-client';

interface Mode {
  readonly title: string;
  readonly method: 'get' | 'post';
  readonly concurrency: number;
  readonly max: number;
}

const MODES: readonly Mode[] = [
  { title: 'GET', method: 'get', concurrency: 1, max: TARGETS.sequential },
  { title: 'POST', method: 'post', concurrency: 1, max: TARGETS.sequential },
  { title: `GET, ${CONCURRENCY} at a time`, method: 'get', concurrency: CONCURRENCY, max: TARGETS.parallel },
  { title: `POST, ${CONCURRENCY} at a time`, method: 'post', concurrency: CONCURRENCY, max: TARGETS.parallel },
];

interface ModeFigures {
  readonly mode: Mode;
  readonly wall: Figures;
  readonly cpu: Figures;
}

/** Measures wall time and CPU time per call in microseconds. */
async function measure(
  call: () => Promise<unknown>,
  concurrency: number,
  calls = concurrency === 1 ? SEQUENTIAL : PARALLEL,
): Promise<{ wall: number; cpu: number }> {
  let left = calls;
  // Otherwise, each candidate would pay for its predecessor's garbage.
  collectGarbage({ type: 'minor' });
  const [start, usage] = [performance.now(), process.cpuUsage()];
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (left-- > 0) await call();
    }),
  );
  const { user, system } = process.cpuUsage(usage);
  return { wall: ((performance.now() - start) * 1_000) / calls, cpu: (user + system) / calls };
}

async function measureMode(mode: Mode, callers: readonly Caller[]): Promise<ModeFigures> {
  for (const caller of callers) await measure(caller[mode.method], CONCURRENCY, WARMUP);
  const cpu = new Map<string, number[]>(callers.map(({ name }) => [name, []]));
  const candidates = callers.map((caller) => ({
    name: caller.name,
    async measure() {
      const figure = await measure(caller[mode.method], mode.concurrency);
      cpu.get(caller.name)?.push(figure.cpu);
      return figure.wall;
    },
  }));
  const wall = await interleaved(candidates, { rounds: ROUNDS, warmups: 1 });
  // Drop the warm-up.
  const cpuPerRound = new Map([...cpu].map(([name, figures]) => [name, figures.slice(-ROUNDS)]));
  return { mode, wall, cpu: cpuPerRound };
}

/** Returns the section of bench/README.md. */
export async function run(): Promise<string> {
  const server = fork(fileURLToPath(new URL('requests/server.ts', import.meta.url)));
  const port = await new Promise<unknown>((resolve) => server.once('message', resolve));
  const base = `http://127.0.0.1:${port}`;
  const callers = [bare(base), bare(base, 'manual'), await own(base), kyAlone(base), ...(await othersAt(base))];
  const measured: ModeFigures[] = [];
  for (const mode of MODES) measured.push(await measureMode(mode, callers));
  server.disconnect();
  return report(measured, callers);
}

function report(measured: readonly ModeFigures[], callers: readonly Caller[]): string {
  const peers = callers.flatMap(({ name }) => (name.startsWith(BASE) || name.startsWith(OWN) ? [] : [name]));
  const sections = measured.map(({ mode, wall, cpu }) => {
    const rows = callers.map(({ name }) => [
      name,
      formatSpread(spread(wall.get(name) ?? []), 0),
      formatSpread(ratio(wall, name, BASE)),
      formatSpread(spread(cpu.get(name) ?? []), 0),
      formatSpread(ratio(cpu, name, BASE)),
    ]);
    const columns = ['client', 'wall, µs', 'times bare fetch', 'CPU, µs', 'times bare fetch'];
    return `### ${mode.title}\n\n${table(columns, rows)}\n\n${verdict(wall, { own: OWN, base: BASE, max: mode.max, baseName: 'a bare fetch', peers })}`;
  });
  return [
    '## Requests',
    `One call including its JSON: a poll of a job, and a create with an idempotency key. ${ROUNDS} interleaved rounds of ${SEQUENTIAL} sequential calls, and of ${PARALLEL} calls with ${CONCURRENCY} at a time, after ${WARMUP} warm-up calls each. All clients use their defaults.`,
    ...sections,
  ].join('\n\n');
}
