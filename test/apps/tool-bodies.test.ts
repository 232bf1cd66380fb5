// The tools of examples/apps/ai-tools.ts in the requests of three AI SDK providers.
import { generateText, type LanguageModel } from 'ai';
import { describe, expect, test, vi } from 'vitest';
import { RULES } from '../field/model-api-rules.js';

type Provider = Readonly<Record<string, (options: object) => (model: string) => LanguageModel>>;
type Body = { readonly tools: readonly Readonly<Record<string, unknown>>[] };

const PROVIDERS = [
  ['OpenAI', 'openai', 'createOpenAI', 'gpt-5', (body: Body) => body.tools.map(({ parameters }) => parameters)],
  [
    'Anthropic',
    'anthropic',
    'createAnthropic',
    'claude-sonnet-4-5',
    (body: Body) => body.tools.map((tool) => tool.input_schema),
  ],
  [
    'Google',
    'google',
    'createGoogleGenerativeAI',
    'gemini-2.5-pro',
    (body: Body) =>
      body.tools.flatMap((tool) =>
        (tool.functionDeclarations as Readonly<Record<string, unknown>>[]).map(
          (declaration) => declaration.parameters ?? declaration.parametersJsonSchema,
        ),
      ),
  ],
] as const;

/** Returns the tools' schemas in a provider's request. */
async function schemasSent(file: string, factory: string, model: string, schemasIn: (body: Body) => unknown[]) {
  const provider: Provider = await import(new URL(`node_modules/@ai-sdk/${file}/dist/index.js`, import.meta.url).href);
  const { videoTools } = await import('../../examples/apps/ai-tools.js');
  const fetch = vi.fn(async (_url: unknown, _init: { readonly body: string }) => new Response('stop', { status: 400 }));
  const create = provider[factory]?.({ apiKey: 'k', fetch });
  if (!create) throw new Error(`${file} has no ${factory}`);
  const call = { model: create(model), prompt: 'a fox', tools: videoTools('ann', 'chat-1'), maxRetries: 0 };
  await generateText(call).catch(() => {});
  return schemasIn(JSON.parse(fetch.mock.calls[0]?.[1].body ?? '{}')) as Readonly<Record<string, unknown>>[];
}

describe.each(PROVIDERS)('%s', (_name, file, factory, model, schemasIn) => {
  test('receives tools with a required prompt and without a top-level combinator', async () => {
    const schemas = await schemasSent(file, factory, model, schemasIn);
    expect(schemas).toHaveLength(2);
    for (const schema of schemas)
      for (const [source, breaks] of RULES) expect([source, breaks(schema)]).toEqual([source, false]);
    expect(schemas[0]?.required).toEqual(['prompt']);
    expect(Object.keys(schemas[0]?.properties ?? {})).toEqual(['prompt', 'model', 'duration', 'aspect_ratio']);
    expect(JSON.stringify(schemas[0])).toContain('svc-video-fast: 4, 5, 6, 8, 10');
  });
});
