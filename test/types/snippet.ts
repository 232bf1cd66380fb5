/** A piece of a user's program, and what the compiler must make of it. */
export interface Snippet {
  /** What it shows. */
  readonly name: string;
  /** Statements that may use what `SNIPPET_HEAD` declares. */
  readonly code: string;
  /** The property (or other word) on which the error must stand, or all of them. Left out for what must compile. */
  readonly error?: string | readonly string[];
  /** What the error must say, piece by piece. */
  readonly says?: readonly string[];
}

/** The snippets of a text: each is a line `// name :: words of the error :: what it says`, and its code below. */
export function snippetsOf(text: string): Snippet[] {
  const parts = text.split(/^\/\/ /m).slice(1);
  return parts.map((part) => {
    const [head = '', ...code] = part.trim().split('\n');
    const [name = '', error, ...says] = head.split(' :: ');
    const at = error === 'the call' ? '' : error?.split(' ');
    return { name, code: code.join('\n'), says, ...(at !== undefined && { error: at }) };
  });
}

/** What stands above the snippets. */
export const SNIPPET_HEAD = `import { APIError, type CheckedImageParams, type CheckedVideoEditParams, type CheckedVideoParams, type CompletedJob, type ContentItem, type CreatedJob, type EditModel, extra, GenClient, type ImageModel, type ImageParams, isCompleted, isFinal, type Job, MODELS, modelCapabilities, type UploadSource, type VideoEditParams, type VideoModel, type VideoParams, type Videos } from 'gen-client';
import { z } from 'zod';
declare const client: GenClient; declare const text: string; declare const seconds: number; declare const items: ContentItem[];
declare const file: Blob; declare const created: CreatedJob; declare const completed: CompletedJob; declare const anything: any;
`;
