/** Quotes text as one word of a POSIX shell. Drops control characters other than tab and line feed. */
export function quote(text: string): string {
  const plain = text.replace(/[^\P{Cc}\t\n]/gu, '');
  return /^[\w@%+=:,./-]+$/.test(plain) ? plain : `'${plain.replaceAll("'", `'\\''`)}'`;
}
