import { signatureOf } from '../../webhooks/signature.js';
import { Refusal } from '../service/refusal.js';
import type { World } from '../world/world.js';
import { storageUrlOf } from './origins.js';

/** A link that works without a key until its time is over, as object storage hands them out. */
export interface StorageLink {
  readonly area: 'uploads' | 'outputs';
  readonly id: string;
  readonly expiresAt: number;
}

/** Signs a link under the storage's URL: the API's own, or another origin where the options say so. */
export async function signLink(world: World, baseUrl: string, link: StorageLink): Promise<string> {
  const root = world.settings.isOtherOrigin ? storageUrlOf(baseUrl) : baseUrl;
  const signature = await sign(world, link);
  return `${root}/storage/${link.area}/${link.id}?expires=${link.expiresAt}&signature=${signature}`;
}

/** Checks a link that came back; throws `storage_denied` or `storage_url_expired`. */
export async function checkLink(world: World, url: string, target: Omit<StorageLink, 'expiresAt'>): Promise<void> {
  const query = new URL(url).searchParams;
  const expiresAt = Number(query.get('expires'));
  if (query.get('signature') !== (await sign(world, { ...target, expiresAt }))) {
    throw new Refusal('storage_denied', 'The signature of this storage link does not match.');
  }
  if (world.timeline.now() >= expiresAt) throw new Refusal('storage_url_expired', 'This storage link has expired.');
}

async function sign({ storageSecret }: World, { area, id, expiresAt }: StorageLink): Promise<string> {
  return (await signatureOf(storageSecret, String(expiresAt), `${area}/${id}`)).slice(0, 40);
}
