import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSandbox } from '../../src/sandbox/index.js';
import { bundleProgram, heard } from '../support/program.js';

interface ToldSpan {
  readonly name: string;
  readonly spanId: string;
  readonly traceId: string;
  readonly parentId?: string;
  readonly jobId?: string;
  readonly links: readonly string[];
}

let program: Awaited<ReturnType<typeof bundleProgram>>;
beforeAll(async () => {
  program = await bundleProgram(new URL('three-roles-process.ts', import.meta.url));
});
afterAll(() => program.remove());

test('a process that creates, one that works and one that receives give one picture, joined by the job', async () => {
  const sandbox = createSandbox({ jobDurationMs: 100 });
  const service = await sandbox.listen({ port: 0 });
  const env = { GEN_API_KEY: sandbox.apiKey, GEN_BASE_URL: service.url };
  const play = (...args: string[]) => heard<{ jobId: string; spans: ToldSpan[] }>(program.start(args, env));
  try {
    const creator = await play('creator');
    const { jobId } = creator;
    const [worker, receiver] = await Promise.all([play('worker', jobId), play('receiver', jobId)]);
    const shape = ({ spans }: { spans: readonly ToldSpan[] }) =>
      spans.map(({ name, parentId }) => [name, spans.find(({ spanId }) => spanId === parentId)?.name]).sort();
    expect(shape(creator)).toEqual([
      ['create', 'generate_content svc-video-fast'],
      ['creator', undefined],
      ['generate_content svc-video-fast', 'creator'],
    ]);
    expect(shape(worker)).toEqual([
      ['download', 'worker'],
      ['wait', 'worker'],
      ['worker', undefined],
    ]);
    expect(shape(receiver)).toEqual([
      ['final', 'receiver'],
      ['receiver', undefined],
    ]);
    const all = [creator, worker, receiver].map(({ spans }) => spans);
    expect(new Set(all.flat().map(({ traceId }) => traceId)).size).toBe(3);
    // Each process has spans with the job's id, and all their links lead to one place.
    for (const spans of all) expect(spans.some((span) => span.jobId === jobId && span.links.length === 1)).toBe(true);
    expect(new Set(all.flat().flatMap(({ links }) => links)).size).toBe(1);
  } finally {
    await service.close();
  }
});
