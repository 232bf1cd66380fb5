/** Sets a value as the map's newest. If the map then has more than `max` entries, evicts and returns the oldest value. */
export function setAndEvict<K, V>(map: Map<K, V>, key: K, value: V, max: number): V | undefined {
  map.delete(key);
  map.set(key, value);
  if (map.size <= max) return undefined;
  for (const [oldest, evicted] of map) {
    map.delete(oldest);
    return evicted;
  }
  return undefined;
}
