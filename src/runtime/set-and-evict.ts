/** Sets the value as the newest of the map. Evicts and returns the oldest if there are more than `max`. */
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
