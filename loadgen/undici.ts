import { createRequire } from 'node:module';

/** Where npm has put it, and only where load is generated: it is larger than all else of the command line. */
export const undici = createRequire(import.meta.url)('undici') as typeof import('undici');
