import { signatureOf } from '../../webhooks/signature.js';
import { Refusal } from '../service/refusal.js';
import type { World } from '../world/world.js';

/** The base URL by which a request came: its own origin, and the path prefix that the sandbox has. */
export function baseUrlOf(requestUrl: string, configured: string): string {
  return new URL(requestUrl).origin + prefixOf(configured);
}

/** The path prefix of a base URL: empty, or a path without a slash at its end. */
export function prefixOf(baseUrl: string): string {
  return new URL(baseUrl).pathname.replace(/\/$/, '');
}

/** A link that works without a key until it expires, as object storage gives them out. */
export interface StorageLink {
  readonly area: 'uploads' | 'outputs';
  readonly id: string;
  readonly expiresAt: number;
}

/** Signs a link to the storage: on the API's own origin, or on another one where the options say so. */
export async function signLink(world: World, baseUrl: string, link: StorageLink): Promise<string> {
  const root = world.settings.isOtherOrigin ? storageUrlOf(baseUrl) : baseUrl;
  const signature = await sign(world, link);
  return `${root}/storage/${link.area}/${link.id}?expires=${link.expiresAt}&signature=${signature}`;
}

/** Checks a link that is used. Throws `storage_denied` or `storage_url_expired`. */
export async function checkLink(world: World, url: string, target: Omit<StorageLink, 'expiresAt'>): Promise<void> {
  const query = new URL(url).searchParams;
  const expiresAt = Number(query.get('expires'));
  if (query.get('signature') !== (await sign(world, { ...target, expiresAt }))) {
    throw new Refusal('storage_denied', 'The signature of this storage link does not match.');
  }
  if (world.timeline.now() >= expiresAt) throw new Refusal('storage_url_expired', 'This storage link has expired.');
}

/**
 * The same sandbox under another origin, as object storage has one: `localhost` for a server on 127.0.0.1 and the other way
 * round, else a host that begins with `storage.`.
 */
function storageUrlOf(baseUrl: string): string {
  const url = new URL(baseUrl);
  if (url.hostname === '127.0.0.1') url.hostname = 'localhost';
  else if (url.hostname === 'localhost') url.hostname = '127.0.0.1';
  else url.hostname = `storage.${url.hostname}`;
  return url.href.replace(/\/$/, '');
}

async function sign({ storageSecret }: World, { area, id, expiresAt }: StorageLink): Promise<string> {
  return (await signatureOf(storageSecret, String(expiresAt), `${area}/${id}`)).slice(0, 40);
}
