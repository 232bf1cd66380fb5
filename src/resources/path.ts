import { GenError } from '../errors/index.js';
import { isFields } from '../schemas/envelope.js';

/**
 * Tags a path whose values are ids: each is encoded and stays one segment. The path is made when the call begins, so that an
 * id that could leave its place, or is none, makes the call reject instead of throwing at whoever has not awaited it yet.
 */
export function path(parts: TemplateStringsArray, ...ids: readonly string[]): () => string {
  return () => {
    let [whole = ''] = parts;
    for (const [at, id] of ids.entries()) whole += segment(id) + parts[at + 1];
    return whole;
  };
}

function segment(id: unknown): string {
  if (typeof id !== 'string' || id === '')
    throw new GenError(`An id must be a non-empty string, not ${describeSegment(id)}.`);
  // Half of a surrogate pair cannot be encoded.
  if (id === '.' || id === '..' || /\p{Cs}/u.test(id)) throw new GenError(`${JSON.stringify(id)} is not an id.`);
  return encodeURIComponent(id);
}

function describeSegment(value: unknown): string {
  if (value === '') return 'an empty one';
  if (isFields(value)) return typeof value.then === 'function' ? 'a promise: await it' : 'an object: pass its id';
  return value === null ? 'null' : typeof value;
}
