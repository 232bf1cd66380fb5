// Preflight in calls. For its rules and messages, see test/rules/preflight.test.ts.
import { describe, expect, it, vi } from 'vitest';
import { type GenClient, PreflightError } from '../../src/index.js';
import { checkImage, checkVideo, checkVideoEdit } from '../../src/rules/preflight.js';
import limits from '../fixtures/limits.json' with { type: 'json' };
import models from '../fixtures/models.json' with { type: 'json' };
import { created, json, rejection, stubbed } from '../transport/support.js';

type Params = Record<string, unknown>;
type Call = 'images' | 'videos' | 'videoEdits' | 'characters';

/** Calls a create without types, as in JavaScript. */
function create(client: GenClient, call: Call, params: unknown, options?: object): Promise<unknown> {
  const resource: { create(params: never, options?: object): Promise<unknown> } = client[call];
  return resource.create(params as never, options);
}

it("preflight rejects with the service's code and the field, without sending anything", async () => {
  const { client, requests } = stubbed(() => json(created()));
  const params = { model: 'svc-video-pro', prompt: 'x', video: '' };
  const rejected = { code: 'video_edit_source_required', param: 'source_video_upload_id' };
  expect(await rejection(create(client, 'videoEdits', params))).toMatchObject({ name: 'PreflightError', ...rejected });
  expect(requests).toEqual([]);
});

describe('the model table', () => {
  const rows = models.flatMap((model) => [
    ...(model.durations ?? []).map((value) => ({ model, param: 'duration', value })),
    ...(model.aspectRatios ?? []).map((value) => ({ model, param: 'ratio', value })),
    ...model.resolutions.map((value) => ({ model, param: 'resolution', value })),
  ]);
  const check = (model: { kind: string; alias: string }, params: Params) => () =>
    (model.kind === 'image' ? checkImage : checkVideo)({ model: model.alias, prompt: 'x', ...params }, () => {});

  it('accepts the values that a model supports', () => {
    for (const { model, param, value } of rows) expect(check(model, { [param]: value })).not.toThrow();
  });

  it('rejects values that only another model supports', () => {
    const codes: Params = {
      duration: 'duration_not_supported',
      ratio: 'aspect_ratio_not_supported',
      resolution: 'resolution_not_supported',
    };
    for (const model of models) {
      for (const { param, value, model: owner } of rows) {
        const isSupported = rows.some((row) => row.model === model && row.param === param && row.value === value);
        // Images have no duration, and their ratios are only examples.
        if (isSupported || (param !== 'resolution' && model.kind !== owner.kind)) continue;
        if (param === 'ratio' && model.aspectRatios === undefined) continue;
        expect(check(model, { [param]: value }), `${model.alias} ${value}`).toThrow(
          expect.objectContaining({ code: codes[param], param }),
        );
      }
    }
  });

  it('accepts edits only for models that support them', () => {
    for (const { alias } of models) {
      const edit = () => checkVideoEdit({ model: alias, prompt: 'x', source_video_upload_id: 'u' }, () => {});
      if (limits.editModels.includes(alias)) expect(edit).not.toThrow();
      else expect(edit).toThrow(expect.objectContaining({ code: 'video_edit_model_not_supported' }));
    }
  });
});

it('only the service checks params if the call or the client sets `preflight: false`', async () => {
  const { client, requests } = stubbed(() => json(created()));
  await create(client, 'videos', { duration: 7, aspectRatio: '16:9' }, { preflight: false });
  expect(JSON.parse(requests[0]?.body ?? '')).toEqual({ duration: 7, aspectRatio: '16:9' });

  const withoutPreflight = stubbed(() => json(created()), { preflight: false });
  await create(withoutPreflight.client, 'videoEdits', {
    model: 'svc-video-gen-2',
    prompt: 'x',
    video: 'https://a.test/a.mp4',
  });
  expect(withoutPreflight.requests).toHaveLength(1);
  await expect(create(withoutPreflight.client, 'videos', { prompt: '' }, { preflight: true })).rejects.toThrow(
    PreflightError,
  );
});

it('a call that ignores guidance logs a warning without the URL', async () => {
  const logger = { debug() {}, info() {}, warn: vi.fn<(...args: unknown[]) => void>(), error() {} };
  const { client, requests } = stubbed(() => json(created()), { logger, logLevel: 'warn' });
  const secret = 'http://a.test/a.png?token=s3cret';
  await create(client, 'images', { prompt: secret, references: [{ type: 'image_url', url: secret }] });
  await create(client, 'videos', { prompt: 'x', camera_fixed: true, webhook_url: 'https://a.test/hook' });
  expect(requests).toHaveLength(2);
  expect(logger.warn).toHaveBeenCalledTimes(1);
  const logged = logger.warn.mock.calls.flat().join(' ');
  expect(logged).toContain('references: the service needs a public URL');
  expect(logged).not.toContain('s3cret');
});
