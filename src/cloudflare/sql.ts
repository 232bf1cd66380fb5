/** A value in a row. */
export type SqlValue = string | number | null | ArrayBuffer;

/** A row of an answer. */
export type SqlRow = Readonly<Record<string, SqlValue>>;

/** What is used of the SQLite storage of a Durable Object. */
export interface SqlStorageLike {
  /** Runs one statement. */
  exec(query: string, ...values: (string | number | null)[]): { toArray(): SqlRow[] };
}
