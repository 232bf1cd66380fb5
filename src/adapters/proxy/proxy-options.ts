import type { GenClient } from '../../client/client.js';
import * as option from '../../rules/options.js';
import type { Budget } from '../../schemas/budget.js';
import type { CharacterParams } from '../../schemas/character.js';
import type { JobCall } from '../../schemas/job.js';
import type { ImageParams } from '../../schemas/params.js';
import type { VideoEditParams, VideoParams } from '../../schemas/video-params.js';
import type { OutputSource } from '../storage/destination.js';

/** A user of your app. */
export interface ProxyUser {
  /** Stable, unique ID. Tickets and idempotency keys are bound to it. */
  readonly id: string;
}

/** Upload fields. A page passes a file, and your function receives a ticket, which the proxy replaces with the upload ID. */
interface InputUploads {
  readonly first_frame_upload_id?: string;
  readonly last_frame_upload_id?: string;
  readonly source_video_upload_id?: string;
  readonly reference_upload_ids?: readonly string[];
  readonly reference_image_upload_ids?: readonly string[];
  readonly reference_video_upload_ids?: readonly string[];
  readonly reference_audio_upload_ids?: readonly string[];
}

/** Default input of a verb: the fields that contain no URL, webhook, or scope. */
export interface DefaultInput extends InputUploads {
  /** Text prompt. */
  readonly prompt: string;
  /** Name of a character. */
  readonly name?: string;
  /** Aspect ratio of a video or a character, for example `16:9`. */
  readonly aspect_ratio?: string;
  /** Aspect ratio of an image or an edit. */
  readonly ratio?: string;
  /** If true, the video has sound. */
  readonly generate_audio?: boolean;
  /** Fixes the seed for a similar result. */
  readonly seed?: number;
}

/** Functions that return the params of each verb. A verb without a function does not exist. */
export interface ProxyCreate<User, Images, Videos, Edits, Characters> {
  /** `POST …/images` */
  readonly images?: ((input: Images, user: User) => ImageParams | Promise<ImageParams>) | undefined;
  /** `POST …/videos` */
  readonly videos?: ((input: Videos, user: User) => VideoParams | Promise<VideoParams>) | undefined;
  /** `POST …/videoEdits` */
  readonly videoEdits?: ((input: Edits, user: User) => VideoEditParams | Promise<VideoEditParams>) | undefined;
  /** `POST …/characters` */
  readonly characters?: ((input: Characters, user: User) => CharacterParams | Promise<CharacterParams>) | undefined;
}

/** The request type that `limit` checks. */
export type ProxyVerb = JobCall | 'session' | 'upload' | 'uploaded' | 'bytes' | 'watch' | 'file';

/** A file that a page wants to upload, as the page describes it. */
export interface UploadedFile {
  /** Media type, for example `image/png`. */
  readonly mime_type: string;
  /** Size in bytes. */
  readonly file_size: number;
  /** File name, without its folder. */
  readonly file_name: string;
}

/** Options for {@link createGenProxy}. */
export interface ProxyOptions<
  User extends ProxyUser,
  Images,
  Videos,
  Edits,
  Characters,
  Verb extends JobCall = JobCall,
> {
  /** Client that sends the requests. Pages never see its API key. */
  readonly client: GenClient;
  /** Secret that signs tickets, of at least 32 characters. To rotate it, pass a list: the first signs, all verify. */
  readonly secret: string | readonly string[];
  /** Returns the user of the request's session, or null for a 401. If it throws, the response is a 500. */
  readonly authorize: (request: Request) => User | null | undefined | Promise<User | null | undefined>;
  /** Functions that return the params to send. No other part of a page's input is sent. */
  readonly create: ProxyCreate<User, Images, Videos, Edits, Characters> & { readonly [Listed in Verb]?: unknown };
  /** Returns true if the user may upload the file. @default no uploads */
  readonly upload?: ((file: UploadedFile, user: User) => boolean | Promise<boolean>) | undefined;
  /** Returns the budget for a user's creates. Without a `scope`, all users share one budget. @default the client's budget */
  readonly budget?: ((user: User) => Budget | Promise<Budget>) | undefined;
  /**
   * Returns true if the user may send this request now. If false, the response is a 429, which the page retries only for
   * `watch`. @default always
   */
  readonly limit?:
    | ((request: { readonly user: User; readonly verb: ProxyVerb }) => boolean | Promise<boolean>)
    | undefined;
  /** Returns the location of your copy of a job's file: `r2(…)` or `s3(…)`. @default the service */
  readonly source?: ((jobId: string) => OutputSource | undefined | Promise<OutputSource | undefined>) | undefined;
  /** Milliseconds to hold a request until a job changes. With 0, the page polls every 5 seconds. @default 20_000 */
  readonly holdMs?: number | undefined;
  /** Other origins whose pages may use the proxy, for example `https://app.example`. @default none */
  readonly origins?: readonly string[] | undefined;
  /** Called with errors that the page didn't cause. Errors that it throws are ignored. @default console.error */
  readonly onError?: ((error: unknown, request: Request) => unknown) | undefined;
}

const MIN_SECRET_LENGTH = 32;
function areSecrets(value: unknown): boolean {
  const secrets = [value].flat();
  const isLong = (secret: unknown) => typeof secret === 'string' && secret.length >= MIN_SECRET_LENGTH;
  return secrets.length > 0 && secrets.length <= 8 && secrets.every(isLong);
}
const VERBS = {
  images: option.callback,
  videos: option.callback,
  videoEdits: option.callback,
  characters: option.callback,
};

const PROXY_OPTIONS = option.optionsOf({
  client: option.requiredObject(
    'the GenClient that creates the jobs',
    (value) => value instanceof Object && 'waitForJob' in value,
  ),
  secret: option.required(
    `a string of ${MIN_SECRET_LENGTH} characters or more, or a list of up to 8 such strings`,
    areSecrets,
    { hides: 'everything' },
  ),
  authorize: option.requiredObject(
    'a function that returns the user of a request, or null',
    (value) => typeof value === 'function',
  ),
  create: option.optionsOf(
    VERBS,
    'the verbs of your pages, for example { videos: (input) => ({ prompt: input.prompt }) }',
  ),
  upload: option.callback,
  budget: option.callback,
  limit: option.callback,
  source: option.callback,
  holdMs: option.millisecondsOrZero,
  origins: option.must("a list of origins, for example ['https://app.example']", (value) => {
    return Array.isArray(value) && value.every(isOrigin);
  }),
  onError: option.callback,
});

const LIFETIME = 'a finite number of milliseconds above 0';
const isLifetime = (value: unknown) => typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY;
export const LINK_OPTIONS = option.optionsOf({ expiresInMs: option.required(LIFETIME, isLifetime) });

export function checkProxyOptions(options: object): void {
  option.checkOptions('createGenProxy', PROXY_OPTIONS, options);
}

function isOrigin(value: unknown): boolean {
  return typeof value === 'string' && URL.canParse(value) && new URL(value).origin === value;
}
