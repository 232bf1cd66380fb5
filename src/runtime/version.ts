/** The version of this package, as published; sent in the `User-Agent` where the runtime lets a client set it. */
export const VERSION = '0.2.0';
