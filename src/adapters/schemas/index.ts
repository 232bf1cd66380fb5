// The params as schemas, for MCP and AI tools, tRPC, Fastify and forms. What a field may be comes from the catalog, and the
// rules between fields are those of preflight.
import * as z from 'zod';
import { MODELS, type ModelCapabilities } from '../../catalog.js';
import { PreflightError } from '../../errors/index.js';
import { checkCharacter, checkImage, checkVideo, checkVideoEdit } from '../../rules/preflight.js';

type Kind = ModelCapabilities['kind'];
type ModelEntry = readonly [alias: string, row: ModelCapabilities];

const ROWS: readonly ModelEntry[] = Object.entries<ModelCapabilities>(MODELS);
const rowsOf = (kind: Kind, fits: (row: ModelCapabilities) => boolean = () => true) =>
  ROWS.filter(([, row]) => row.kind === kind && fits(row));

const url = (what: string) => z.url().describe(`${what} A public HTTPS URL.`);
const nonEmptyText = (what: string) => z.string().min(1).describe(what);
const ids = (what: string) => z.array(z.string().min(1)).describe(what);
const urls = (what: string) => z.array(z.url()).describe(`${what} Public HTTPS URLs.`);

/** The values that any of the models offers. */
function offered<T>(rows: readonly ModelEntry[], listOf: (row: ModelCapabilities) => readonly T[] | undefined): T[] {
  return [...new Set(rows.flatMap(([, row]) => listOf(row) ?? []))];
}

/** One of the models' values. Which model offers which is in the rules of the object. */
function oneOfModels<T extends string | number>(
  rows: readonly ModelEntry[],
  what: string,
  listOf: (row: ModelCapabilities) => readonly T[] | undefined,
) {
  const by = rows.map(([alias, row]) => `${alias}: ${(listOf(row) ?? []).join(', ')}`).join('; ');
  return z.literal(offered(rows, listOf)).describe(`${what} By model: ${by}.`);
}
const durations = ({ durations: list }: ModelCapabilities): readonly number[] | undefined => list;
const resolutions = ({ resolutions: list }: ModelCapabilities): readonly string[] | undefined => list;
const ratios = ({ aspectRatios: list }: ModelCapabilities): readonly string[] | undefined => list;

/** What the JSON form of a schema says about the fields that depend on the model. */
function byModel(
  rows: readonly ModelEntry[],
  fields: Readonly<Record<string, 'durations' | 'resolutions' | 'aspectRatios'>>,
) {
  return {
    allOf: rows.map(([alias, row]) => ({
      if: { properties: { model: { const: alias } }, required: ['model'] },
      // biome-ignore lint/suspicious/noThenProperty: this is the keyword of JSON Schema.
      then: {
        properties: Object.fromEntries(
          Object.entries(fields).map(([field, list]) => [field, { enum: row[list] ?? [] }]),
        ),
      },
    })),
  };
}

/** The rules of preflight as a check of a schema: one issue, at the parameter that is wrong. */
function rules<T extends object>(check: (params: unknown, warn: () => void) => void) {
  return (params: T, context: { addIssue(issue: { code: 'custom'; message: string; path: string[] }): void }) => {
    try {
      check(params, () => {});
    } catch (error) {
      if (!PreflightError.isInstance(error)) throw error;
      context.addIssue({ code: 'custom', message: error.message, path: [error.param] });
    }
  };
}

const model = (rows: readonly ModelEntry[], what: string) => z.enum(rows.map(([alias]) => alias)).describe(what);
const everyCreate = {
  webhook_url: url("Receives the signed event of the job's end.").optional(),
  callback_url: url('Alias of webhook_url.').optional(),
  idempotency_key: nonEmptyText('The same key never makes a second job.').optional(),
};
const images = rowsOf('image');
const videos = rowsOf('video');
const editors = rowsOf('video', ({ edits }) => edits === true);

/**
 * The params of `images.create` as a zod schema. Values that depend on the model are checked too, with the message that
 * `images.create` would reject with. Files are upload ids here, because a schema describes JSON.
 *
 * @example
 * const params = imageParams.parse({ prompt: 'a fox at dawn', ratio: '16:9' });
 * const { job } = await client.images.create(params);
 */
export const imageParams = z
  .strictObject({
    model: model(images, 'Image model. The service chooses where there is none.').optional(),
    prompt: nonEmptyText('What the image shows.'),
    ratio: oneOfModels(images, 'Aspect ratio.', ratios).optional(),
    resolution: oneOfModels(images, 'Resolution.', resolutions).optional(),
    response_format: z.literal('url').describe('How the image comes back.').optional(),
    watermark: z.boolean().optional(),
    safety_identifier: nonEmptyText('Hashed id of the end user.').optional(),
    references: z
      .array(z.strictObject({ type: z.literal('image_url'), url: z.url() }))
      .describe('Reference images by public HTTPS URL.')
      .optional(),
    reference_upload_ids: ids('Reference images by upload id.').optional(),
    character_ids: ids('Registered characters, by id or slug.').optional(),
    reference_image_urls: urls('Reference images.').optional(),
    referenceImageUrls: urls('Alias of reference_image_urls.').optional(),
    reference_images: urls('Alias of reference_image_urls.').optional(),
    ...everyCreate,
  })
  .superRefine(rules(checkImage))
  .meta(byModel(images, { ratio: 'aspectRatios', resolution: 'resolutions' }));

const role = z.enum(['first_frame', 'reference_video', 'reference_audio']);
const contentItem = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: z.string() }),
  z.strictObject({ type: z.literal('image_url'), image_url: z.url(), role }),
  z.strictObject({ type: z.literal('video_url'), video_url: z.strictObject({ url: z.url() }), role }),
  z.strictObject({ type: z.literal('audio_url'), audio_url: z.url(), role }),
]);

const videoFields = {
  prompt: nonEmptyText('Subject, action, camera move, light and style.').optional(),
  content: z.array(contentItem).describe('The prompt and references as a list, in place of prompt.').optional(),
  resolution: oneOfModels(videos, 'Resolution.', resolutions).optional(),
  duration: oneOfModels(videos, 'Length in seconds.', durations).optional(),
  generate_audio: z.boolean().describe('Whether the video has sound, on models that support it.').optional(),
};

/** The params of `videos.create` as a zod schema: see {@link imageParams}. An edit by `intent` has `videoEditParams`. */
export const videoParams = z
  .strictObject({
    model: model(videos, 'Video model. svc-video-fast where there is none.').optional(),
    ...videoFields,
    aspect_ratio: nonEmptyText('Aspect ratio, for example 16:9.').optional(),
    ratio: nonEmptyText('Alias of aspect_ratio.').optional(),
    seed: z.int().describe('Fixes the seed for a similar result.').optional(),
    camera_fixed: z.boolean().describe('Keeps the camera still.').optional(),
    watermark: z.boolean().optional(),
    first_frame_url: url('Start image.').optional(),
    first_frame_upload_id: nonEmptyText('Start image, by upload id.').optional(),
    last_frame_url: url('End image.').optional(),
    last_frame_upload_id: nonEmptyText('End image, by upload id.').optional(),
    reference_image_urls: urls('Images that guide appearance and style.').optional(),
    reference_image_upload_ids: ids('Images that guide appearance and style, by upload id.').optional(),
    referenceImageUrls: urls('Alias of reference_image_urls.').optional(),
    reference_images: urls('Alias of reference_image_urls.').optional(),
    reference_video_urls: urls('Clips that guide motion or camera.').optional(),
    reference_video_upload_ids: ids('Clips that guide motion or camera, by upload id.').optional(),
    referenceVideoUrls: urls('Alias of reference_video_urls.').optional(),
    reference_videos: urls('Alias of reference_video_urls.').optional(),
    reference_audio_urls: urls('Sound that guides voice, music or timing.').optional(),
    reference_audio_upload_ids: ids('Sound that guides voice, music or timing, by upload id.').optional(),
    referenceAudioUrls: urls('Alias of reference_audio_urls.').optional(),
    reference_audios: urls('Alias of reference_audio_urls.').optional(),
    character_ids: ids('Registered characters, by id or slug.').optional(),
    video_reference_mode: nonEmptyText('strict: never make the video without its clips.').optional(),
    safety_identifier: nonEmptyText('Hashed id of the end user.').optional(),
    ...everyCreate,
  })
  .superRefine(rules(checkVideo))
  .meta(byModel(videos, { duration: 'durations', resolution: 'resolutions' }));

/** The params of `videoEdits.create` as a zod schema: see {@link imageParams}. */
export const videoEditParams = z
  .strictObject({
    model: model(editors, 'Model that edits videos.'),
    ...videoFields,
    edit_mode: nonEmptyText('transform, restyle or extend.').optional(),
    source_video_upload_id: nonEmptyText('The clip to edit, by the id of an upload of type VIDEO.').optional(),
    video: url('The clip to edit.').optional(),
    source_video_url: url('The clip to edit, as video.').optional(),
    ratio: nonEmptyText('Aspect ratio of the result. adaptive where there is none.').optional(),
    reference_image_upload_ids: ids('Reference images, by upload id.').optional(),
    reference_images: urls('Reference images.').optional(),
    reference_audios: urls('Reference audio.').optional(),
    ...everyCreate,
  })
  .superRefine(rules(checkVideoEdit))
  .meta(byModel(editors, { duration: 'durations', resolution: 'resolutions' }));

/** The params of `characters.create` as a zod schema: see {@link imageParams}. */
export const characterParams = z
  .strictObject({
    name: nonEmptyText('Name of the character.'),
    prompt: nonEmptyText("Hairstyle, wardrobe, pose, style and palette. Not a real person's likeness."),
    reference_upload_ids: ids('Reference images, by upload id.').optional(),
    aspect_ratio: nonEmptyText('Aspect ratio of the image.').optional(),
    resolution: nonEmptyText('Resolution of the image.').optional(),
    ...everyCreate,
  })
  .superRefine(rules(checkCharacter));
