import { ResponseError } from '../errors/index.js';
import { type Fields, isFields, recordIn, unwrap } from '../schemas/envelope.js';
import { missingText } from '../schemas/essentials.js';
import { CREATED_UPLOAD_ESSENTIALS, type CreatedUpload, type Upload } from '../schemas/upload.js';

/** Where an answer came from. */
interface AnswerContext {
  readonly method: string;
  readonly path: string;
  readonly idempotencyKey?: string | undefined;
}

/** Where step 1's headers may stand: the spec says "headers to use" and shows no name. */
const HEADER_FIELDS = ['headers', 'upload_headers', 'direct_upload_headers', 'required_headers'];

/** Step 1's answer: `data.upload`, `data` or the body itself, whichever carries the id. */
export function readCreatedUpload(body: unknown, context: AnswerContext): CreatedUpload {
  const data = unwrap(body);
  const record: Fields = { ...(isFields(data) && data), ...(recordIn(body, 'upload') as object) };
  const missing = missingText(record, CREATED_UPLOAD_ESSENTIALS);
  if (missing === undefined) return { ...(record as CreatedUpload), headers: headersOf(record) };
  const { method, path: url, idempotencyKey } = context;
  const path = `data.${missing}`;
  throw new ResponseError(`${method} ${url} answered without a usable "${path}".`, {
    method,
    url,
    idempotencyKey,
    path,
  });
}

/** Step 3's answer. Its body is not documented: the id that was asked about stands where the answer names none. */
export function readCompletedUpload(body: unknown, uploadId: string): Upload {
  const record = recordIn(body, 'upload');
  const fields = isFields(record) ? record : {};
  return { ...fields, upload_id: missingText(fields, ['upload_id']) ? uploadId : String(fields.upload_id) };
}

/** The headers as a plain record, also where the answer lists them as pairs or as name and value. */
function headersOf(record: Readonly<Record<string, unknown>>): Record<string, string> {
  const found = HEADER_FIELDS.map((name) => record[name]).find((value) => typeof value === 'object' && value !== null);
  const pairs = Array.isArray(found) ? found.map(pairOf) : Object.entries(found ?? {});
  return Object.fromEntries(pairs.map(([name, value]) => [name, String(value)]));
}

function pairOf(item: unknown): [string, unknown] {
  if (Array.isArray(item)) return [String(item[0]), item[1]];
  const { name, key, value }: Fields = isFields(item) ? item : {};
  return [String(name ?? key), value];
}
