import { basename, resolve } from 'node:path';

/** The name of a model that was given none: that of its folder or file. */
export function nameOf(path: string): string {
  return basename(resolve(path)).replace(/\.gguf$/i, '');
}
