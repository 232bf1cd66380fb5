/** Sets the value as the last one of the map. Drops and returns the first when there are more than `most`. */
export function keepLast<K, V>(map: Map<K, V>, key: K, value: V, most: number): V | undefined {
  map.delete(key);
  map.set(key, value);
  if (map.size <= most) return undefined;
  for (const [oldest, dropped] of map) {
    map.delete(oldest);
    return dropped;
  }
  return undefined;
}
