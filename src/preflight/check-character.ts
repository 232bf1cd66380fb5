import { isGiven, paramsOf, requirePrompt, requireText } from './rules.js';

/** The documented rules of POST /v1/characters in register mode. */
export function checkRegistration(body: unknown): void {
  const params = paramsOf(body);
  requireText(params, 'name');
  // A file is uploaded, and its description is checked then.
  if (typeof params.upload_id === 'string' || !isGiven(params.upload_id)) requireText(params, 'upload_id');
}

/** The documented rules of POST /v1/characters in prompt mode. */
export function checkCharacter(body: unknown): void {
  const params = paramsOf(body);
  requireText(params, 'name');
  requirePrompt(params);
}
