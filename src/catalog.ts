/** Video aliases in the same row pair are one model (spec: Model aliases). */
const VIDEO_FAST = { kind: 'video', durations: [4, 5, 6, 8, 10], resolutions: ['480p', '720p'] } as const;
const VIDEO_PRO = {
  kind: 'video',
  durations: [4, 5, 6, 8, 10, 12, 15],
  resolutions: ['480p', '720p', '1080p', '4k'],
} as const;

/** Every documented model alias with what it can do (spec: Model aliases). Types, preflight and sandbox read this table. */
export const MODELS = {
  'svc-image-fast': { kind: 'image', aspectRatios: ['1:1', '4:5', '3:4', '9:16', '16:9'], resolutions: ['standard'] },
  'svc-image-pro': {
    kind: 'image',
    aspectRatios: ['1:1', '4:5', '3:4', '9:16', '16:9', '21:9'],
    resolutions: ['standard', 'high'],
  },
  'svc-image-gen-5-pro': {
    kind: 'image',
    aspectRatios: ['1:1', '4:5', '3:4', '9:16', '16:9', '21:9'],
    resolutions: ['standard'],
  },
  'svc-image-gen-5-flash': {
    kind: 'image',
    aspectRatios: ['1:1', '4:5', '3:4', '9:16', '16:9'],
    resolutions: ['standard'],
  },
  'svc-video-fast': { ...VIDEO_FAST, sameAs: 'svc-video-gen-2-fast', edits: true },
  'svc-video-gen-2-fast': { ...VIDEO_FAST, sameAs: 'svc-video-fast' },
  'svc-video-mini': { ...VIDEO_FAST, sameAs: 'svc-video-gen-2-mini', edits: true },
  'svc-video-gen-2-mini': { ...VIDEO_FAST, sameAs: 'svc-video-mini' },
  'svc-video-pro': { ...VIDEO_PRO, sameAs: 'svc-video-gen-2', edits: true },
  'svc-video-gen-2': { ...VIDEO_PRO, sameAs: 'svc-video-pro' },
  'svc-video-gen-1-5': {
    kind: 'video',
    durations: [4, 5, 6, 8, 10, 12, 15],
    resolutions: ['480p', '720p', '1080p'],
  },
  'svc-video-gen-2-5': {
    kind: 'video',
    durations: [4, 5, 6, 8, 10, 12, 15, 20, 25, 30],
    resolutions: ['480p', '720p', '1080p'],
  },
} as const;

/** A documented model alias. */
export type ModelAlias = keyof typeof MODELS;
/** The aliases of one kind. */
type AliasOfKind<K> = { [A in ModelAlias]: (typeof MODELS)[A]['kind'] extends K ? A : never }[ModelAlias];
/** A documented image alias (spec: Model aliases). */
export type ImageModel = AliasOfKind<'image'>;
/** A documented video alias (spec: Model aliases). */
export type VideoModel = AliasOfKind<'video'>;
/** An alias that takes source-video edits (spec: POST /v1/video-edits). */
export type EditModel = {
  [A in ModelAlias]: (typeof MODELS)[A] extends { readonly edits: true } ? A : never;
}[ModelAlias];

/** The model a video is made with when the call names none (spec: Limits). */
export const DEFAULT_VIDEO_MODEL = 'svc-video-fast' satisfies VideoModel;
