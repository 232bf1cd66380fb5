// The sandbox in its own process, for bench/sandbox.ts: sends its URL and key, and its memory on request.
type SandboxModule = typeof import('../../src/sandbox/index.js');

const { createSandbox }: SandboxModule = await import(new URL('../../dist/sandbox.js', import.meta.url).href);
const sandbox = createSandbox({ limits: 'off', balanceTokens: 1e9, jobDurationMs: 1000 });
const { url } = await sandbox.listen();
process.send?.({ url, apiKey: sandbox.apiKey });
process.on('message', () => process.send?.({ rss: process.memoryUsage.rss() }));
process.on('disconnect', () => process.exit());
