// The provider in @ai-sdk/workflow, which serializes models between steps.
import { execFile } from 'node:child_process';
import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSandbox } from 'gen-client/sandbox';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureBuilt } from '../../support/build.js';
import { freePort } from '../../support/free-port.js';
import { folder, makeProject, whyNoEngine } from '../engine-packages.js';

const reason = whyNoEngine('ai-sdk');
const CONFIG = `import { workflow } from '@workflow/vitest';
export default { plugins: [workflow()], test: { include: ['run-*.ts'], testTimeout: 300_000 } };
`;

describe.skipIf(reason !== undefined)("the AI SDK's workflows", () => {
  beforeAll(ensureBuilt, 180_000);

  it('pass models to steps, and create one video', async () => {
    const sandbox = createSandbox({ jobDurationMs: 1500, limits: 'off' });
    const service = await sandbox.listen({ port: 0 });
    const project = makeProject('ai-sdk');
    for (const name of ['model-workflows.ts', 'run-models.ts']) {
      copyFileSync(`${folder('ai-sdk')}project/${name}`, join(project, name));
    }
    writeFileSync(join(project, 'vitest.config.mjs'), CONFIG);
    const port = await freePort();
    const env = {
      ...process.env,
      GEN_API_KEY: sandbox.apiKey,
      GEN_BASE_URL: service.url,
      PORT: String(port),
      WORKFLOW_LOCAL_BASE_URL: `http://127.0.0.1:${port}`,
    };
    try {
      const program = `${folder('ai-sdk')}node_modules/vitest/vitest.mjs`;
      const output = await new Promise<string>((resolve) => {
        execFile(process.execPath, [program, 'run'], { cwd: project, env }, (error, stdout, stderr) =>
          resolve(error ? `${stdout}\n${stderr}` : ''),
        );
      });
      expect(output).toBe('');
      expect(sandbox.jobs.map(({ modelId, status }) => [modelId, status])).toEqual([['svc-video-mini', 'completed']]);
      expect(sandbox.deliveries.map(({ status }) => status)).toEqual([202]);
    } finally {
      await service.close();
      rmSync(project, { recursive: true, force: true });
    }
  }, 600_000);
});
