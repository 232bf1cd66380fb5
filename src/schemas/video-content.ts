/** What an item is for (spec: POST /v1/videos, content). */
export type ContentRole = 'first_frame' | 'reference_video' | 'reference_audio';

/** A prompt in `content`. */
export interface TextContent {
  type: 'text';
  /** Subject, action, camera, light, style. */
  text: string;
}

/** An image in `content`. */
export interface ImageContent {
  type: 'image_url';
  /** Public HTTPS URL. */
  image_url: string;
  /** What it is for. */
  role: ContentRole;
}

/** A clip in `content`. */
export interface VideoContent {
  type: 'video_url';
  /** Public HTTPS URL. */
  video_url: { url: string };
  /** What it is for. */
  role: ContentRole;
}

/** Sound in `content`. */
export interface AudioContent {
  type: 'audio_url';
  /** Public HTTPS URL. */
  audio_url: string;
  /** What it is for. */
  role: ContentRole;
}

/** An item of `content` (the alternative input of a video job; spec: POST /v1/videos). */
export type ContentItem = TextContent | ImageContent | VideoContent | AudioContent;
