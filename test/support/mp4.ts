/** Returns the duration of a sandbox MP4, in seconds. Throws for other files. */
export function secondsOf(mp4: Uint8Array): number {
  const header = Buffer.from(mp4).indexOf('mvhd') + 4;
  if (header < 4) throw new Error('no MP4');
  const view = new DataView(mp4.buffer, mp4.byteOffset + header, 20);
  return view.getUint32(16) / view.getUint32(12);
}
