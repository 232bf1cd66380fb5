/** Returns the first repeated name in a JSON object, for which `JSON.parse` returns only the last value. */
export function repeatedName(json: string): string | undefined {
  const names: Set<string>[] = [];
  let name = '';
  for (let at = 0; at < json.length; at++) {
    const char = json[at];
    if (char === '{') names.push(new Set());
    if (char === '}') names.pop();
    if (char === ':') {
      if (names.at(-1)?.has(name)) return name;
      names.at(-1)?.add(name);
    }
    if (char === '"') {
      const start = at;
      // The text is valid JSON, so each string ends.
      for (at += 1; at < json.length && json[at] !== '"'; at++) if (json[at] === '\\') at += 1;
      name = JSON.parse(json.slice(start, at + 1));
    }
  }
  return undefined;
}
