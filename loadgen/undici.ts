import { createRequire } from 'node:module';

/** The undici package, loaded only where load is generated: it is larger than the rest of the command line. */
export const undici = createRequire(import.meta.url)('undici') as typeof import('undici');
