// What the failed step of an upload means.
import { APIError, documentedStatus, type GenError, PreflightError, UploadError } from '../errors/index.js';
import { fateOf, mayHaveCreated } from './fate.js';

type Left = UploadError['left'];

/** Storage refuses an expired URL with one of these, or with 410. */
const REFUSES_A_URL: readonly number[] = [400, 401, 403];

/** What the failed create of an upload has left on the service. */
export function leftByCreate(error: unknown): Left {
  return mayHaveCreated(error) ? 'unknown' : 'nothing';
}

/** What is left of an upload whose deletion has failed. */
export function leftByDeletion(error: unknown): Left {
  if (!APIError.isInstance(error)) return mayHaveCreated(error) ? 'unknown' : 'upload';
  if (documentedStatus(error) === 404) return 'nothing';
  return error.code !== 'upload_in_use' && fateOf(error) === 'lost' ? 'unknown' : 'upload';
}

/**
 * Whether storage refused the bytes because the URL has expired: it answers 410, or another refusal that says so. A 403 that
 * says nothing is treated as one.
 */
export function isExpiredUrl(error: unknown): boolean {
  if (!APIError.isInstance(error)) return false;
  const { status, data, message, code } = error;
  if (status === 410) return true;
  if (!REFUSES_A_URL.includes(status)) return false;
  const said = typeof data === 'string' ? data : JSON.stringify(data ?? '');
  if (status === 403 && /^\W*$/.test(said)) return true;
  return /expir|time frame/i.test(`${code} ${message} ${said}`);
}

/** Whether another upload of the same file would fail in the same way: the file cannot be right, or the service refuses it. */
export function failsAgain(error: GenError): boolean {
  if (PreflightError.isInstance(error)) return true;
  if (!UploadError.isInstance(error)) return fateOf(error) === 'refused';
  return error.step === 'prepare' || fateOf(error.cause) === 'refused';
}
