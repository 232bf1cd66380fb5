// What the service or a file says may carry escape sequences that a terminal obeys. None gets through here.

/** Control and formatting characters: escape sequences, line breaks, text that runs backwards. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Text as one line that a terminal only shows. */
export function plainText(value: unknown): string {
  return String(value).replace(UNSAFE, ' ').trimEnd();
}

/** JSON on one line in which no character can steer a terminal. */
export function plainJson(value: unknown): string {
  const json = JSON.stringify(value) ?? 'null';
  return json.replace(UNSAFE, (char) =>
    [...char].flatMap((one) => Array.from({ length: one.length }, (_, at) => escapeUnit(one.charCodeAt(at)))).join(''),
  );
}

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}
