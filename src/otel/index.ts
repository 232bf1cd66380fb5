export type { InstrumentOptions } from './instrument.js';
export { instrumentGenClient } from './instrument.js';
