// Schemas of the params, for MCP and AI tools, tRPC, Fastify, and forms. Values come from the catalog, and rules between
// fields come from preflight. The JSON schemas have no combinator at the top level, because model APIs reject such tools.
import * as z from 'zod';
import { DEFAULT_VIDEO_MODEL, MODELS, type ModelCapabilities, ratiosOf } from '../../catalog.js';
import { GenError, PreflightError } from '../../errors/index.js';
import { checkCharacter, checkImage, checkVideo, checkVideoEdit } from '../../rules/preflight.js';
import { invalidValueMessage } from '../../schemas/format-value.js';
import { didYouMean } from '../../schemas/spelling.js';

type Kind = ModelCapabilities['kind'];
type ModelEntry = readonly [alias: string, row: ModelCapabilities];

const ROWS: readonly ModelEntry[] = Object.entries<ModelCapabilities>(MODELS);
const rowsOf = (kind: Kind, isMatch: (row: ModelCapabilities) => boolean = () => true) =>
  ROWS.filter(([, row]) => row.kind === kind && isMatch(row));

const url = (description: string) => z.url().describe(`${description} A public HTTPS URL.`);
const nonEmptyText = (description: string) => z.string().min(1).describe(description);
const ids = (description: string) => z.array(z.string().min(1)).describe(description);
const urls = (description: string) => z.array(z.url()).describe(`${description} Public HTTPS URLs.`);

/** Schema of a value that depends on the model. The description lists the values, and preflight validates them. */
function modelDependent<T extends string | number>(
  schema: z.ZodType<T>,
  description: string,
  [rows, list]: readonly [rows: readonly ModelEntry[], list: 'durations' | 'resolutions' | 'aspectRatios'],
) {
  const valuesOf = (row: ModelCapabilities) => (list === 'aspectRatios' ? ratiosOf(row) : (row[list] ?? []));
  const valuesByModel = rows.map(([alias, row]) => `${alias}: ${valuesOf(row).join(', ')}`).join('; ');
  return schema.describe(`${description} By model: ${valuesByModel}.`);
}

type Check = (params: unknown, warn: () => void) => void;

/** Preflight check of each schema, for `pickParams`. */
const CHECKS = new WeakMap<z.ZodObject, Check>();

/** Creates a strict object schema with a preflight check, which reports one issue at the invalid param. */
function paramsSchema<Shape extends z.ZodRawShape>(shape: Shape, check: Check): z.ZodObject<Shape, z.core.$strict> {
  const fields = Object.keys(shape);
  const schema = z.strictObject(shape).superRefine((params, context) => {
    // Preflight doesn't check fields that a caller adds with `extend`.
    const schemaParams = Object.fromEntries(Object.entries(params).filter(([field]) => fields.includes(field)));
    try {
      check(schemaParams, () => {});
    } catch (error) {
      if (!PreflightError.isInstance(error)) throw error;
      context.addIssue({ code: 'custom', message: error.message, path: [error.param] });
    }
  });
  CHECKS.set(schema, check);
  // zod's methods throw for a schema with a check, but don't suggest a fix.
  const reject = (method: string) => () => {
    throw new GenError(
      `${method}: this would drop the rules between params. Use pickParams(params, ['prompt', 'model']).`,
    );
  };
  return Object.assign(schema, { pick: reject('pick'), omit: reject('omit'), partial: reject('partial') });
}

/** Without `content`, `prompt` is required. */
type PickedShape<Shape, Key extends keyof Shape> = {
  [F in Key]: F extends 'prompt'
    ? 'content' extends Key
      ? Shape[F]
      : Shape[F] extends z.ZodOptional<infer P extends z.core.$ZodType>
        ? P
        : Shape[F]
    : Shape[F];
};

/**
 * Returns a schema with only the given fields, which still validates the models' rules. `prompt` is required unless you also
 * pick `content`. Throws a GenError for an unknown field, or for a schema of another package.
 *
 * @example
 * const input = pickParams(videoParams, ['prompt', 'model', 'duration']);
 */
export function pickParams<Shape extends z.ZodRawShape, Key extends keyof Shape & string>(
  params: z.ZodObject<Shape, z.core.$strict>,
  fields: readonly Key[],
): z.ZodObject<PickedShape<Shape, Key>, z.core.$strict> {
  const check = CHECKS.get(params);
  if (check === undefined)
    throw new GenError(invalidValueMessage('pickParams: params', 'a schema of gen-client/schemas', params));
  const missing = fields.find((field) => !(field in params.shape));
  if (missing !== undefined) {
    throw new GenError(`pickParams: unknown field "${missing}". ${didYouMean(missing, Object.keys(params.shape))}`);
  }
  const needsPrompt = !fields.some((field) => field === 'content');
  const pickedFields = fields.map((field) => {
    const schema = params.shape[field];
    return [field, needsPrompt && field === 'prompt' && schema instanceof z.ZodOptional ? schema.unwrap() : schema];
  });
  return paramsSchema<PickedShape<Shape, Key>>(Object.fromEntries(pickedFields), check);
}

const model = (rows: readonly ModelEntry[], description: string) =>
  nonEmptyText(`${description} ${rows.map(([alias]) => alias).join(', ')}, or a newer one.`);
const commonFields = {
  webhook_url: url('Receives a signed event when the job is final.').optional(),
  callback_url: url('Alias of webhook_url.').optional(),
  idempotency_key: nonEmptyText('The same key never creates a second job.').optional(),
};
const imageModels = rowsOf('image');
const videoModels = rowsOf('video');
const editModels = rowsOf('video', ({ edits }) => edits === true);

/**
 * Zod schema for the params of `images.create`. Validates values by model, with the same messages as the call. Files must be
 * upload IDs, because the schema describes JSON.
 *
 * @example
 * const params = imageParams.parse({ prompt: 'a fox at dawn', ratio: '16:9' });
 * const { job } = await client.images.create(params);
 */
export const imageParams = paramsSchema(
  {
    model: model(imageModels, 'Image model. By default, the service chooses one.').optional(),
    prompt: nonEmptyText('What the image shows.'),
    ratio: modelDependent(z.string(), 'Aspect ratio.', [imageModels, 'aspectRatios']).optional(),
    resolution: modelDependent(z.string(), 'Resolution.', [imageModels, 'resolutions']).optional(),
    response_format: z.literal('url').describe('How the image is returned.').optional(),
    watermark: z.boolean().optional(),
    safety_identifier: nonEmptyText('Hashed ID of the end user.').optional(),
    references: z
      .array(z.strictObject({ type: z.literal('image_url'), url: z.url() }))
      .describe('Reference images by public HTTPS URL.')
      .optional(),
    reference_upload_ids: ids('Reference images by upload ID.').optional(),
    character_ids: ids('Registered characters, by ID or slug.').optional(),
    reference_image_urls: urls('Reference images.').optional(),
    referenceImageUrls: urls('Alias of reference_image_urls.').optional(),
    reference_images: urls('Alias of reference_image_urls.').optional(),
    ...commonFields,
  },
  checkImage,
);

const role = z.enum(['first_frame', 'reference_video', 'reference_audio']);
const contentItem = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: z.string() }),
  z.strictObject({ type: z.literal('image_url'), image_url: z.url(), role }),
  z.strictObject({ type: z.literal('video_url'), video_url: z.strictObject({ url: z.url() }), role }),
  z.strictObject({ type: z.literal('audio_url'), audio_url: z.url(), role }),
]);

const videoFields = {
  prompt: nonEmptyText('Subject, action, camera move, light, and style.').optional(),
  content: z.array(contentItem).describe('The prompt and references as a list, instead of prompt.').optional(),
  resolution: modelDependent(z.string(), 'Resolution.', [videoModels, 'resolutions']).optional(),
  duration: modelDependent(z.number(), 'Length in seconds.', [videoModels, 'durations']).optional(),
  generate_audio: z.boolean().describe('If true, adds sound. For models that support it.').optional(),
};

/**
 * Zod schema for the params of `videos.create`, like {@link imageParams}. For an edit by `intent`, use
 * `videoEditParams`.
 */
export const videoParams = paramsSchema(
  {
    model: model(videoModels, 'Video model. The default is svc-video-fast.').optional(),
    ...videoFields,
    aspect_ratio: nonEmptyText(
      `Aspect ratio, for example ${ratiosOf(MODELS[DEFAULT_VIDEO_MODEL]).join(', ')}.`,
    ).optional(),
    ratio: nonEmptyText('Alias of aspect_ratio.').optional(),
    seed: z.int().describe('Fixes the seed for a similar result.').optional(),
    camera_fixed: z.boolean().describe('Keeps the camera still.').optional(),
    watermark: z.boolean().optional(),
    first_frame_url: url('Start image.').optional(),
    first_frame_upload_id: nonEmptyText('Start image, by upload ID.').optional(),
    last_frame_url: url('End image.').optional(),
    last_frame_upload_id: nonEmptyText('End image, by upload ID.').optional(),
    reference_image_urls: urls('Images that guide appearance and style.').optional(),
    reference_image_upload_ids: ids('Images that guide appearance and style, by upload ID.').optional(),
    referenceImageUrls: urls('Alias of reference_image_urls.').optional(),
    reference_images: urls('Alias of reference_image_urls.').optional(),
    reference_video_urls: urls('Clips that guide motion or camera.').optional(),
    reference_video_upload_ids: ids('Clips that guide motion or camera, by upload ID.').optional(),
    referenceVideoUrls: urls('Alias of reference_video_urls.').optional(),
    reference_videos: urls('Alias of reference_video_urls.').optional(),
    reference_audio_urls: urls('Audio that guides voice, music, or timing.').optional(),
    reference_audio_upload_ids: ids('Audio that guides voice, music, or timing, by upload ID.').optional(),
    referenceAudioUrls: urls('Alias of reference_audio_urls.').optional(),
    reference_audios: urls('Alias of reference_audio_urls.').optional(),
    character_ids: ids('Registered characters, by ID or slug.').optional(),
    video_reference_mode: nonEmptyText('strict: never generate the video without its clips.').optional(),
    safety_identifier: nonEmptyText('Hashed ID of the end user.').optional(),
    ...commonFields,
  },
  checkVideo,
);

/** Zod schema for the params of `videoEdits.create`, like {@link imageParams}. */
export const videoEditParams = paramsSchema(
  {
    model: model(editModels, 'Model that edits videos.'),
    ...videoFields,
    edit_mode: nonEmptyText('transform, restyle, or extend.').optional(),
    source_video_upload_id: nonEmptyText('The clip to edit, by the ID of a VIDEO upload.').optional(),
    video: url('The clip to edit.').optional(),
    source_video_url: url('Alias of video.').optional(),
    ratio: nonEmptyText('Aspect ratio of the result. The default is adaptive.').optional(),
    reference_image_upload_ids: ids('Reference images, by upload ID.').optional(),
    reference_images: urls('Reference images.').optional(),
    reference_audios: urls('Reference audio.').optional(),
    ...commonFields,
  },
  checkVideoEdit,
);

/** Zod schema for the params of `characters.create`, like {@link imageParams}. */
export const characterParams = paramsSchema(
  {
    name: nonEmptyText('Name of the character.'),
    prompt: nonEmptyText("Hairstyle, wardrobe, pose, style, and palette. Not a real person's likeness."),
    reference_upload_ids: ids('Reference images, by upload ID.').optional(),
    aspect_ratio: nonEmptyText('Aspect ratio of the image.').optional(),
    resolution: nonEmptyText('Resolution of the image.').optional(),
    ...commonFields,
  },
  checkCharacter,
);
