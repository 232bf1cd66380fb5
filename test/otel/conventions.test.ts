// The semantic conventions for generative AI, on the oldest and newest OpenTelemetry.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { describe, expect, test } from 'vitest';
import { bundleProgram, receiveMessage } from '../support/program.js';
import { warnOrFailInCI } from '../support/real-tools.js';

interface Report {
  readonly spans: readonly {
    readonly name: string;
    readonly kind: number;
    readonly status: number;
    readonly attributes: Readonly<Record<string, unknown>>;
  }[];
  /** The provider and model of each metric value. */
  readonly models: readonly string[];
}

const pathTo = (file: string) => fileURLToPath(new URL(file, import.meta.url));
const newest = (name: string) => pathTo(`newest/node_modules/@opentelemetry/${name}`);
const ALIASES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '1.9': {},
  newest: {
    '@opentelemetry/api': newest('api'),
    '@opentelemetry/context-async-hooks': newest('context-async-hooks'),
    '@opentelemetry/sdk-metrics': newest('sdk-metrics'),
    '@opentelemetry/sdk-trace-base': pathTo('newest/sdk-trace-base.mjs'),
  },
};

async function reportOf(version: string): Promise<Report> {
  const alias = ALIASES[version] ?? {};
  const program = await bundleProgram(new URL('conventions-process.ts', import.meta.url), { alias });
  return receiveMessage<Report>(program.start([])).finally(program.remove);
}

const isMissing = !existsSync(newest('api'));
if (isMissing) warnOrFailInCI('the newest OpenTelemetry is not installed (npm ci --prefix test/otel/newest)');
describe.each(Object.keys(ALIASES))('on OpenTelemetry %s', (version) => {
  test.skipIf(version === 'newest' && isMissing)(
    "a job's client span contains its operation, model, and provider",
    async () => {
      const { spans, models: metricModels } = await reportOf(version);
      const jobs = spans.filter(({ kind }) => kind === SpanKind.CLIENT);
      expect(jobs.map(({ name, status }) => [name, status])).toEqual([
        ['generate_content svc-video-fast', SpanStatusCode.UNSET],
        ['generate_content svc-image-pro', SpanStatusCode.UNSET],
        ['generate_content svc-video-fast', SpanStatusCode.ERROR],
        // An unknown model isn't part of a span name.
        ['generate_content', SpanStatusCode.ERROR],
        ['generate_content', SpanStatusCode.UNSET],
      ]);
      const attributesOf = (model: string) => ({
        'gen_ai.operation.name': 'generate_content',
        'gen_ai.provider.name': 'gen_client',
        'gen_ai.output.type': expect.stringMatching(/^(video|image)$/),
        'gen_ai.request.model': model,
      });
      const models = ['svc-video-fast', 'svc-image-pro', 'svc-video-fast', 'of-a-user', 'of-a-user'];
      expect(jobs.map(({ attributes }) => attributes)).toMatchObject(models.map(attributesOf));
      // A job has a single span with an operation, so counting those spans counts each job once.
      const operations = spans.filter(({ attributes }) => 'gen_ai.operation.name' in attributes);
      expect(operations).toEqual(jobs);
      const waits = spans.filter(({ name }) => name === 'wait').map(({ status }) => status);
      expect(waits).toEqual([SpanStatusCode.UNSET, SpanStatusCode.UNSET, SpanStatusCode.ERROR]);
      expect(new Set(metricModels)).toEqual(
        new Set(['gen_client svc-video-fast', 'gen_client svc-image-pro', 'gen_client other']),
      );
    },
  );
});
