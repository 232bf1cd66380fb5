import { adviseHttps, type CheckOptions, paramsOf, requireOffered, requirePrompt } from './rules.js';

/** The documented rules of POST /v1/images. */
export function checkImage(body: unknown, warn: (message: string) => void, options?: CheckOptions): void {
  const params = paramsOf(body, 'ratio');
  requirePrompt(params);
  requireOffered(params, 'image', options);
  adviseHttps(params, warn);
}
