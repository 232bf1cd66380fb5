/** Version of this package. Sent in the `User-Agent` if the runtime allows it. */
export const VERSION = '0.2.0';
