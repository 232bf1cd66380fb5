/**
 * The legal variants of what the document leaves open, by name, the default first. {@link ResponseShapes} explains them.
 */
export const SHAPES = {
  error: ['object', 'code', 'flat', 'data', 'errors', 'detail'],
  list: ['named', 'items', 'results', 'array', 'map', 'bare'],
  job: ['job', 'data', 'bare'],
  upload: ['flat', 'nested', 'bare'],
  uploadHeaders: ['canonical', 'lower-case', 'with-length', 'pairs', 'records'],
  character: ['nested', 'flat'],
  warning: ['everywhere', 'data', 'job', 'body', 'single', 'records'],
  empty: ['json', 'none'],
  completedTwice: ['ok', 'conflict'],
  requestId: ['x-request-id', 'x-service-request-id', 'request-id', 'none'],
  failedEventUrl: ['null', 'link'],
  referenceKinds: ['grouped', 'single'],
} as const;

type Variant<K extends keyof typeof SHAPES> = (typeof SHAPES)[K][number];

/**
 * How the sandbox answers where the document leaves the form open. Every value is one that the real service may choose, so
 * try a client against all of them.
 *
 * @example
 * createSandbox({ shapes: { error: 'flat', list: 'items', empty: 'none' } });
 */
export interface ResponseShapes {
  /**
   * The envelope of an error. `object`: `{ success: false, error: { code, message }, data }`.
   * `code`: `{ success: false, error: code, message, data }`. `flat`: `{ code, message, data }`.
   * `data`: `{ success: false, data: { code, message } }`. `errors`: `{ success: false, errors: [{ code, message }], data }`.
   * `detail`: `{ detail: { code, message }, data }`. @default 'object'
   */
  readonly error?: Variant<'error'> | undefined;
  /**
   * Where GET /v1/models, /v1/voices and /v1/characters put their records. `named`: `data.models`. `items`: `data.items`.
   * `results`: `data.results`. `array`: `data` is the list. `map`: `data.models` is an object by id. `bare`: the body is the
   * list. @default 'named'
   */
  readonly list?: Variant<'list'> | undefined;
  /**
   * Where POST /v1/images, /v1/characters and /v1/video-edits put the job; POST /v1/videos is documented. `job`: `data.job`.
   * `data`: `data` is the job. `bare`: the body is the job. @default 'job'
   */
  readonly job?: Variant<'job'> | undefined;
  /** Where the upload steps put the upload. `flat`: in `data`. `nested`: in `data.upload`. `bare`: the body. @default 'flat' */
  readonly upload?: Variant<'upload'> | undefined;
  /**
   * The headers for the PUT of an upload. `canonical`: an object with names such as `Content-Type`. `lower-case`: the same in
   * lower case. `with-length`: with `Content-Length` among them, as presigned URLs often have. `pairs`: a list of
   * `[name, value]`. `records`: a list of `{ name, value }`. @default 'canonical'
   */
  readonly uploadHeaders?: Variant<'uploadHeaders'> | undefined;
  /** Where GET /v1/characters/{character_id} puts the record. `nested`: `data.character`. `flat`: `data`. @default 'nested' */
  readonly character?: Variant<'character'> | undefined;
  /**
   * Where the warning of a create is. `everywhere`: `data.warnings` and `job.warnings`, two lists of codes.
   * `data`: `data.warnings` only. `job`: `job.warnings` only. `body`: `warnings` beside `data`. `single`: `data.warning`, a
   * string. `records`: `data.warnings`, a list of `{ code, message }`. @default 'everywhere'
   */
  readonly warning?: Variant<'warning'> | undefined;
  /** The answer to a DELETE and to POST /v1/uploads/complete. `json`: a body. `none`: 204 without a body. @default 'json' */
  readonly empty?: Variant<'empty'> | undefined;
  /** Completing an upload again. `ok`: the same answer. `conflict`: 409 `upload_completed`. @default 'ok' */
  readonly completedTwice?: Variant<'completedTwice'> | undefined;
  /** The header that carries the request's id, or `none`. @default 'x-request-id' */
  readonly requestId?: Variant<'requestId'> | undefined;
  /** `providerOutputUrl` in the event of a job without a file. `link`: the link that leads nowhere. @default 'null' */
  readonly failedEventUrl?: Variant<'failedEventUrl'> | undefined;
  /**
   * What "one kind of reference per request" means. `grouped`: frames are one kind; images, clips and
   * audio together are the other. `single`: frames, images, clips and audio are four kinds. @default 'grouped'
   */
  readonly referenceKinds?: Variant<'referenceKinds'> | undefined;
}

/** The shapes with every default filled in. */
export type Shapes = { readonly [K in keyof typeof SHAPES]: Variant<K> };

/** Fills in the defaults. */
export function shapesOf(given: ResponseShapes = {}): Shapes {
  const named = Object.entries(SHAPES).map(([name, [first]]) => [name, Reflect.get(given, name) ?? first]);
  return Object.fromEntries(named);
}
